import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { describeUnless } from '../support/needs.ts';
import { buildVersion } from '../support/other-version.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;
const given = {
  config: { server: { max_concurrent_agents: 4, worker_pool_size: 2 } },
  command: ['sleep 1', 'sleep 1', 'sleep 1'],
};
type Server = Awaited<ReturnType<typeof openServer>>;

const idOf = async (server: Server, title: string): Promise<string> =>
  (await server.agent('create', title)).out.trim();

const startTasks = async (server: Server, count: number): Promise<readonly string[]> => {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) ids.push(await idOf(server, `Task ${n}`));
  for (const id of ids)
    expect(await server.agent('engineer', id, '--async')).toMatchObject({ code: 0 });
  return ids;
};

/** One of them is. */
const untilActing = (server: Server, ...ids: readonly string[]): Promise<void> =>
  vi.waitFor(
    async () =>
      expect(await Promise.all(ids.map((id) => server.viewOf(id)))).toContainEqual(
        expect.objectContaining({ phase: 'acting' }),
      ),
    { timeout: 20 * seconds, interval: 100 },
  );

const untilComplete = async (server: Server, ids: readonly string[], attempt = 1): Promise<void> =>
  vi.waitFor(
    async () => {
      for (const id of ids)
        expect(await server.viewOf(id)).toMatchObject({ status: 'complete', attempt });
    },
    { timeout: 60 * seconds, interval: 500 },
  );

describeUnless(noPostgres)('servers with changed charts', () => {
  const ends: (() => unknown)[] = [];
  let second = '';
  let third = '';
  beforeAll(() => {
    second = buildVersion(1, 2, (end) => void ends.push(end));
    third = buildVersion(2, 3, (end) => void ends.push(end));
  }, 120 * seconds);
  afterAll(async () => {
    for (const end of ends) await end();
  });

  test('a rolling upgrade over three versions loses no attempt and repeats none', {
    tags: ['slow'],
    timeout: 240 * seconds,
  }, async () => {
    const address = await freshAddress();
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two]) await server.agent('server', 'start');
    const all: string[] = [];
    for (const version of [second, third])
      for (const server of [one, two]) {
        const started = await startTasks(two, 4);
        all.push(...started);
        await untilActing(two, ...started);
        await server.agent('server', 'stop');
        server.upgrade(version);
        expect(await server.agent('server', 'start')).toMatchObject({ code: 0 });
        const { out } = await server.agent('list');
        expect(all.filter((id) => !out.includes(id))).toEqual([]);
      }

    await untilComplete(one, all);
    const states = await inPostgres(address, 'select distinct pending, owner from actors');
    expect(states).toEqual([{ pending: 0, owner: null }]);
    const ended = await inPostgres(address, `select task_id from journal where type = 'completed'`);
    expect(ended.map(({ task_id }) => task_id).toSorted()).toEqual(all.toSorted());
  });

  test('an attempt of newer charts waits for a server that knows them, and everybody can see that', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const [old, next] = [
      await openServer(address, given),
      await openServer(address, { ...given, programs: second }),
    ];
    await old.agent('server', 'start');
    await next.agent('server', 'start');
    const ids = await startTasks(next, 1);
    const [id = ''] = ids;
    await vi.waitFor(async () =>
      expect(await inPostgres(address, `select version from actors where id = '${id}#1'`)).toEqual([
        { version: 2 },
      ]),
    );
    expect(await old.viewOf(id)).toMatchObject({ status: 'started' });
    await next.stopServer('SIGKILL');

    await vi.waitFor(
      async () => expect((await old.agent('server', 'status')).out).toContain(`${id} (version 2)`),
      { timeout: 20 * seconds, interval: 500 },
    );
    expect((await old.agent('list')).out).toContain(id);
    const { code, err } = await old.agent('explain', id);
    expect([code, err]).toEqual([
      expect.any(Number),
      expect.stringContaining('was saved by charts of version 2, and this server knows 1; start'),
    ]);
    await next.agent('server', 'start');

    await untilComplete(old, ids);
    expect((await old.agent('server', 'status')).out).not.toContain('version 2');
  });

  test('a person can end an attempt of charts that no server knows, and run its task again', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const server = await openServer(address, { ...given, programs: second });
    await server.agent('server', 'start');
    const ids = await startTasks(server, 2);
    const [id = '', other = ''] = ids;
    await untilActing(server, id);
    await untilActing(server, other);
    await server.stopServer('SIGKILL');
    server.upgrade(undefined);
    await server.agent('server', 'start');

    expect((await server.agent('server', 'status')).out).toContain(`${other} (version 2)`);
    expect(await server.agent('cancel', id, '--reason', 'old version')).toMatchObject({
      code: 0,
      err: '',
    });
    expect(await server.viewOf(id)).toMatchObject({ status: 'cancelled', attempt: 1 });
    expect(await server.agent('retry', id, '--async')).toMatchObject({ code: 0 });

    await untilComplete(server, [id], 2);
    expect((await server.agent('server', 'status')).out).not.toContain(id);
    server.upgrade(second);
    await server.agent('server', 'restart');
    await untilComplete(server, [other]);
  });
});
