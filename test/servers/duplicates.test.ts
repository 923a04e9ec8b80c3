import { expect, test, vi } from 'vitest';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;
const ids = Array.from({ length: 24 }, (_, n) => n);

describeUnless(noPostgres)('requests that come twice', () => {
  test('to two servers at once make one task and one run each, and both get the same answer', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const servers = [await openServer(address), await openServer(address)];
    for (const server of servers) await server.agent('server', 'start');
    const atBoth = (method: string, params: object) =>
      Promise.all(servers.map((server) => server.call(method, params)));

    const answers = await Promise.all(
      ids.map((n) =>
        atBoth('execute', { task: `Task ${n}`, role: 'engineer', request_id: `r${n}` }),
      ),
    );

    for (const [one, other] of answers) expect(other).toEqual(one);
    const made = answers.map(([one]) => String(one?.result?.['task_id']));
    expect(new Set(made).size).toBe(ids.length);
    const tasks = await inPostgres(address, 'select id from tasks');
    expect(tasks.map(({ id }) => id).sort()).toEqual([...made].sort());
    const again = await atBoth('execute', { task: 'Task 0', role: 'engineer', request_id: 'r0' });
    expect(again).toEqual(answers[0]);

    for (const id of made) expect((await servers[0]?.agent('wait', id))?.code).toBe(0);
    const attempts = await inPostgres(address, 'select task_id from attempts');
    expect(attempts.map(({ task_id }) => task_id).sort()).toEqual([...made].sort());
  });

  test('a run of all tasks that comes to two servers at once starts each task once, also one that fails at once', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const agent = { max_retries: 0 };
    const given = { config: { agent } };
    const servers = [await openServer(address, given), await openServer(address, given)];
    for (const server of servers) await server.agent('server', 'start');
    const [first] = servers;
    for (const n of ids) await first?.call('create', { description: `Task ${n}` });
    const request = {
      ...{ role: 'engineer', request_id: 'all' },
      options: { verify: ['false'] },
    };

    const [one, two] = await Promise.all(servers.map((server) => server.call('run', request)));

    expect(two).toEqual(one);
    expect(one?.result).toMatchObject({ accepted: ids.map(() => expect.anything()), skipped: [] });
    await vi.waitFor(
      async () =>
        expect(await inPostgres(address, 'select id from actors where pending = 1')).toEqual([]),
      { timeout: 60 * seconds, interval: 250 },
    );
    expect(await first?.call('run', request)).toEqual(one);
    const attempts = await inPostgres(address, 'select task_id, attempt, status from attempts');
    expect(attempts).toHaveLength(ids.length);
    expect(new Set(attempts.map(({ task_id, status }) => `${task_id} ${status}`)).size).toBe(
      ids.length,
    );
  });

  test('of two answers to one question, at two servers at once, one is taken and the other refused', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      config: { server: { max_concurrent_agents: ids.length } },
      question: 'left or right?',
    };
    const servers = [await openServer(address, given), await openServer(address, given)];
    for (const server of servers) await server.agent('server', 'start');
    const [first] = servers;
    for (const n of ids) await first?.call('create', { description: `Task ${n}` });
    await first?.call('run', { role: 'engineer' });
    const listed = async () => (await first?.call('list', {}))?.result?.['tasks'] as Task[];
    await vi.waitFor(
      async () => {
        for (const { awaiting } of await listed()) expect(awaiting?.input_id).toBeDefined();
      },
      { timeout: 60 * seconds, interval: 250 },
    );
    const tasks = await listed();

    const answers = await Promise.all(
      tasks.map(({ task_id, attempt, awaiting }) =>
        Promise.all(
          servers.map((server, at) =>
            server.call('respond', {
              ...{ task_id, attempt, input_id: awaiting?.input_id },
              text: ['left', 'right'][at],
            }),
          ),
        ),
      ),
    );

    for (const pair of answers) {
      const refused = pair.flatMap(({ error }) => (error === undefined ? [] : [error]));
      expect(refused).toMatchObject([{ data: { code: 'event_not_allowed' } }]);
    }
    for (const [at, { task_id }] of tasks.entries()) {
      expect((await first?.agent('wait', task_id))?.code).toBe(0);
      const taken = answers[at]?.[0]?.error === undefined ? 'left' : 'right';
      const given = await inPostgres(
        address,
        `select data from journal where task_id = '${task_id}' and data like '%"answered"%'`,
      );
      expect(given.map(({ data }) => JSON.parse(data).decision)).toMatchObject([{ said: taken }]);
    }
  });
});

interface Task {
  readonly task_id: string;
  readonly attempt: number;
  readonly awaiting: { readonly input_id: string } | null;
}
