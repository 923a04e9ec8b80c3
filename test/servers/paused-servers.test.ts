import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { isAlive } from '../../src/actors/process/pid.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres, ownServer } from '../support/postgres.ts';
import { openServer, runsIn } from '../support/servers.ts';

const seconds = 1_000;
const patience = { timeout: 40 * seconds, interval: 200 };

/** Goes on at the end of the test, else it could not be stopped. */
const freeze = (pid: number): void => {
  process.kill(pid, 'SIGSTOP');
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, 'SIGCONT');
  });
};

/** How often each task ended, by its id. */
const endsIn = async (address: string) =>
  (
    await inPostgres(
      address,
      "select task_id, count(*)::int as count from journal where type = 'completed' group by 1",
    )
  ).map(({ task_id, count }) => [task_id, count]);

const twoServers = async () => {
  const address = await freshAddress();
  const given = { config: { server: { max_concurrent_agents: 2 } }, command: 'sleep 3' };
  const [one, two] = [await openServer(address, given), await openServer(address, given)];
  for (const server of [one, two]) await server.agent('server', 'start');
  return { address, one, two };
};

describeUnless(noPostgres)('servers that are paused', () => {
  test('one that was frozen for longer than its lease saves nothing more and ends; its task went on elsewhere', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const { address, one, two } = await twoServers();
    const id = (await one.agent('create', 'Frozen')).out.trim();
    await one.agent('engineer', id, '--async');
    await vi.waitFor(async () => expect((await two.viewOf(id)).phase).toBe('acting'), patience);
    const { pid } = one.serverFile();

    freeze(pid);
    await vi.waitFor(
      async () => expect(await two.viewOf(id)).toMatchObject({ status: 'complete' }),
      patience,
    );
    process.kill(pid, 'SIGCONT');

    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), patience);
    await delay(500);
    expect(await endsIn(address)).toEqual([[id, 1]]);
    const [ended] = await inPostgres(address, 'select owner from attempts');
    const [frozen] = await inPostgres(address, 'select id from nodes where ended = 1');
    expect(ended?.owner).not.toBe(frozen?.id);
  });

  test('one that is frozen while it writes does not stop the others for longer than their lease', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const { address, one, two } = await twoServers();
    const { pid } = one.serverFile();
    const writing = `select 1 from pg_stat_activity a join pg_locks l using (pid)
      where a.state = 'idle in transaction' and l.relation = 'journal_end'::regclass`;
    freeze(pid);
    while ((await inPostgres(address, writing)).length === 0) {
      process.kill(pid, 'SIGCONT');
      await delay(1);
      process.kill(pid, 'SIGSTOP');
      await delay(20);
    }

    // Longer than the lease, and than PostgreSQL waited before.
    await delay(8 * seconds);

    expect(isAlive(two.serverFile().pid)).toBe(true);
    const id = (await two.agent('create', 'Goes on')).out.trim();
    await two.agent('engineer', id, '--async');
    await vi.waitFor(
      async () => expect(await two.viewOf(id)).toMatchObject({ status: 'complete' }),
      patience,
    );
    process.kill(pid, 'SIGCONT');
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), patience);
  });

  test('all of them wait for a database that is killed and started again, and nobody takes over', {
    tags: ['slow'],
    timeout: 180 * seconds,
  }, async () => {
    const database = await ownServer();
    const address = `${database.address}?schema=shared`;
    const given = {
      config: { server: { max_concurrent_agents: 4 }, store: { lease_seconds: 10 } },
      command: 'sleep 8',
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two]) await server.agent('server', 'start');
    const ids: string[] = [];
    for (const server of [one, two, one, two]) {
      const id = (await server.agent('create', 'Patient')).out.trim();
      await server.agent('engineer', id, '--async');
      ids.push(id);
    }
    await vi.waitFor(
      async () =>
        expect(
          await inPostgres(address, 'select 1 from actors where live_attempt > 0 and id = task_id'),
        ).toHaveLength(4),
      patience,
    );
    const owners = await inPostgres(
      address,
      'select id, owner from actors where owner is not null order by id',
    );

    database.stop('immediate');
    await delay(1_500);
    await database.start();

    await vi.waitFor(
      async () => expect((await endsIn(address)).map(([, count]) => count)).toEqual([1, 1, 1, 1]),
      patience,
    );
    const ended = await inPostgres(address, 'select task_id as id, owner from attempts order by 1');
    expect(ended).toEqual(owners);
    expect((await runsIn(address)).most).toBeLessThanOrEqual(4);
    expect(await inPostgres(address, 'select 1 from nodes where ended = 1')).toEqual([]);
  });
});
