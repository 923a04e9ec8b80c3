import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { isAlive } from '../../src/actors/process/pid.ts';
import { testUnless } from '../support/needs.ts';
import { freshAddress, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;
type Server = Awaited<ReturnType<typeof openServer>>;

const poison = {
  title: 'Poison',
  turns: [{ calls: [{ tool: 'bash', arguments: { command: 'sleep 1; kill -9 $PPID' } }] }],
};

/** Starts the servers again whenever they are dead, until the task is over. @returns how often one died */
const diedUntilOver = async (servers: readonly Server[], id: string): Promise<number> => {
  let died = 0;
  for (;;) {
    for (const server of servers) {
      const file = server.serverFile();
      if (file !== null && isAlive(file.pid)) continue;
      if (file !== null) died += 1;
      await server.agent('server', 'start');
    }
    const view = (await servers[0]?.call('status', { task_id: id }).catch(() => null))?.result;
    if (view?.['status'] === 'failed') return died;
    await delay(100);
  }
};

for (const { store, address, count } of [
  { store: 'SQLite', address: async () => null, count: 1 },
  { store: 'PostgreSQL', address: freshAddress, count: 2 },
])
  testUnless(count > 1 ? noPostgres : null)(
    `an attempt that ends its server at each restore fails after three of them, and its neighbour goes on (${store})`,
    { tags: ['slow'], timeout: 240 * seconds },
    async () => {
      const at = await address();
      const servers: Server[] = [];
      for (let n = 0; n < count; n += 1)
        servers.push(
          await openServer(at, {
            config: { server: { max_concurrent_agents: 2 } },
            command: 'until [ -e go ]; do sleep 0.1; done',
            scripts: [poison],
          }),
        );
      const [one] = servers;
      if (one === undefined) return;
      await one.agent('server', 'start');
      const ids: string[] = [];
      for (const title of ['Poison', 'Neighbour']) {
        const id = (await one.agent('create', title)).out.trim();
        await one.agent('engineer', id, '--async');
        ids.push(id);
      }
      const [bad = '', good = ''] = ids;

      const died = await diedUntilOver(servers, bad);

      expect(died).toBe(4);
      const { error, attempt } = await one.viewOf(bad);
      expect(error).toMatchObject({
        code: 'crash_loop',
        message: expect.stringContaining(`agent retry ${bad}`),
      });
      expect(attempt).toBe(1);
      for (const words of [
        ['show', bad],
        ['explain', bad],
        ['logs', bad],
      ])
        expect((await one.agent(...words)).out, words.join(' ')).toContain('died 4 times in a row');
      for (const { root } of servers) writeFileSync(join(root, 'go'), '');
      expect((await one.agent('wait', good)).code).toBe(0);
    },
  );
