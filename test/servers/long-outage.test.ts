import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { describeUnless } from '../support/needs.ts';
import { inPostgres, noPostgres, type OwnServer, ownServer } from '../support/postgres.ts';
import { freezeServerIn } from '../support/postgres-programs.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;
/** Shorter than a lease, and longer than any other time in which a commit is tried. */
const outageMs = 40 * seconds;
const patience = { timeout: 240 * seconds, interval: 500 };

const outages: Readonly<Record<string, (database: OwnServer) => Promise<void>>> = {
  'is frozen': async (database) => {
    const thaw = freezeServerIn(database.folder);
    await delay(outageMs);
    thaw();
  },
  'is stopped': async (database) => {
    database.stop('immediate');
    await delay(outageMs);
    await database.start();
  },
};

describeUnless(noPostgres)('a long outage', () => {
  test.each(Object.keys(outages))(
    'attempts between two states go on when the database %s for 40 s',
    { tags: ['slow'], timeout: 400 * seconds },
    async (kind) => {
      const database = await ownServer();
      const address = `${database.address}?schema=shared`;
      const given = {
        config: { server: { max_concurrent_agents: 8 }, store: { lease_seconds: 120 } },
        command: Array.from({ length: 8 }, (_, n) => `echo ${n}`),
      };
      const servers = [await openServer(address, given), await openServer(address, given)];
      for (const server of servers) await server.agent('server', 'start');
      const ids: string[] = [];
      for (const server of Array.from({ length: 12 }, () => servers).flat()) {
        const task = `Do step ${ids.length} of many`;
        const { result } = await server.call('execute', { task, role: 'engineer', options: {} });
        ids.push((result as { task_id: string }).task_id);
      }
      await vi.waitFor(
        async () =>
          expect((await inPostgres(address, 'select 1 from attempts')).length).toBeGreaterThan(2),
        { timeout: 60 * seconds, interval: 5 },
      );

      await outages[kind]?.(database);

      await vi.waitFor(
        async () =>
          expect(await inPostgres(address, 'select 1 from attempts')).toHaveLength(ids.length),
        patience,
      );
      expect(await inPostgres(address, "select data from journal where type = 'failed'")).toEqual(
        [],
      );
      const ends = await inPostgres(address, 'select distinct attempt, status from attempts');
      expect(ends).toEqual([{ attempt: 1, status: 'complete' }]);
      // A claim that finds the tracker away is shown so, and comes again.
      const shown = (phase: string): string =>
        `count(*) filter (where data like '{"status":"started","phase":"${phase}"%')`;
      const claims = `select task_id from journal where type = 'status_update' group by 1
        having ${shown('preparing')} > 1 + ${shown('waiting_for_tracker')}`;
      expect(await inPostgres(address, claims)).toEqual([]);
    },
  );
});
