import { expect, test } from 'vitest';
import { isLong } from '../support/long.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { randomFrom, seed } from '../support/random.ts';
import { openServer, runsIn } from '../support/servers.ts';

const kills = isLong ? 500 : 4;
const seconds = 1_000;
const cap = 3;

type Server = Awaited<ReturnType<typeof openServer>>;

/** Tasks that wait or run, so that there is always something to lose. */
const atOnce = 6;

describeUnless(noPostgres)('servers that are killed', () => {
  test(`${kills} times kill -9 of random servers (seed ${seed}): no task is lost, stuck or at two places, and the cap holds`, {
    tags: ['slow'],
    timeout: (60 + 20 * kills) * seconds,
  }, async () => {
    const random = randomFrom(seed);
    const below = (count: number): number => Math.floor(random() * count);
    const address = await freshAddress();
    const given = {
      config: { server: { max_concurrent_agents: cap, worker_pool_size: 2 } },
      command: 'sleep 0.4',
    };
    const servers: Server[] = [];
    for (let n = 0; n < 3; n += 1) servers.push(await openServer(address, given));
    await Promise.all(servers.map((server) => server.agent('server', 'start')));
    const isUp = servers.map(() => true);
    const ids: string[] = [];
    const openCount = async (): Promise<number> =>
      (await inPostgres(address, 'select 1 from actors where pending = 1')).length;
    const add = async (server: Server): Promise<void> => {
      for (let open = await openCount(); open < atOnce; open += 1) {
        const id = (await server.agent('create', `Task ${ids.length}`)).out.trim();
        ids.push(id);
        const run = await server.agent('engineer', id, '--async');
        expect([run.code, run.err]).toEqual([0, '']);
      }
    };

    for (let kill = 0; kill < kills; kill += 1) {
      const up = servers.filter((_, at) => isUp[at]);
      await add(up[below(up.length)] as Server);
      await new Promise((resolve) => setTimeout(resolve, below(1_500)));
      const victim = below(servers.length);
      if (isUp[victim] === true) await servers[victim]?.stopServer('SIGKILL');
      isUp[victim] = false;
      // At least one goes on.
      for (const [at, server] of servers.entries())
        if (isUp[at] === false && (below(2) === 0 || !isUp.includes(true))) {
          expect((await server.agent('server', 'start')).code).toBe(0);
          isUp[at] = true;
        }
    }

    for (let tries = 0; (await openCount()) > 0 && tries < 240; tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 250));
    expect(await openCount(), 'stuck').toBe(0);
    const ended = await inPostgres(
      address,
      "select task_id, type, count(*)::int as count from journal where type in ('completed', 'failed', 'cancelled') group by 1, 2",
    );
    expect(
      ended.map(({ task_id, type, count }) => `${task_id} ${type} ${count}`).toSorted(),
    ).toEqual(ids.map((id) => `${id} completed 1`).toSorted());
    const { most, owners } = await runsIn(address);
    expect(most).toBeLessThanOrEqual(cap);
    expect(owners.reduce((sum, [, count]) => sum + count, 0)).toBe(ids.length);
  });
});
