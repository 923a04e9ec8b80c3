import { describe, expect, test, vi } from 'vitest';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { openServer, runsIn } from '../support/servers.ts';

const seconds = 1_000;

describe.skipIf(noPostgres !== null)(`servers that share a store ${noPostgres ?? ''}`, () => {
  test('run the tasks of one of them, never more at once than the cap of all', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      config: { server: { max_concurrent_agents: 3, worker_pool_size: 2 } },
      command: 'sleep 0.3',
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two])
      expect(await server.agent('server', 'start')).toMatchObject({ code: 0 });
    for (let n = 0; n < 9; n += 1)
      await one.agent('create', `Task ${n}`, '--label', 'role:engineer');

    const run = await one.agent('run');
    expect([run.code, run.out, run.err]).toEqual([0, expect.anything(), '']);

    const { most, owners } = await runsIn(address);
    expect(most).toBe(3);
    expect(owners).toHaveLength(2);
    expect(owners.reduce((sum, [, count]) => sum + count, 0)).toBe(9);
  });

  test('go on with the tasks of one that was killed, after its lease', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      config: { server: { max_concurrent_agents: 2, worker_pool_size: 1 } },
      command: 'sleep 1',
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    for (const server of [one, two]) await server.agent('server', 'start');
    const ids: string[] = [];
    for (let n = 0; n < 6; n += 1) ids.push((await one.agent('create', `Task ${n}`)).out.trim());
    for (const id of ids) await one.agent('engineer', id, '--async');
    await vi.waitFor(async () =>
      expect(
        (await inPostgres(address, 'select distinct owner from actors where live_attempt > 0'))
          .length,
      ).toBe(2),
    );
    await one.stopServer('SIGKILL');

    await vi.waitFor(
      async () => {
        for (const id of ids) expect(await two.viewOf(id)).toMatchObject({ status: 'complete' });
      },
      { timeout: 40 * seconds, interval: 500 },
    );
    const { most } = await runsIn(address);
    expect(most).toBeLessThanOrEqual(2);
  });
});
