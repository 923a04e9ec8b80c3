import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { isAlive } from '../../src/actors/process/pid.ts';
import { startDatabaseProxy } from '../support/database-proxy.ts';
import { isLong } from '../support/long.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';
import { temporaryFolder } from '../support/temporary.ts';

const seconds = 1_000;
const patience = { timeout: 60 * seconds, interval: 200 };
const cuts = isLong ? 10 : 1;

/** The command of an agent notes each tenth of a second, so that the file tells where it ran. */
const notingCommand = (file: string, tenths: number): string =>
  `n=0; while [ $n -lt ${tenths} ]; do echo "$PWD" >> ${file}; sleep 0.1; n=$((n+1)); done`;

/** The folders in which it ran, each run of equal lines once. */
const placesIn = (file: string): readonly string[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .filter((place, at, all) => place !== all[at - 1]);

describeUnless(noPostgres)('a server without its database', () => {
  test.for(['kill', 'silence'] as const)(
    'ends its attempt before another one goes on with it, saves nothing more, and comes back (%s)',
    {
      tags: ['slow'],
      timeout: (60 + 60 * cuts) * seconds,
    },
    async (how) => {
      const address = await freshAddress();
      const proxy = await startDatabaseProxy(address, onTestFinished);
      const notes = join(temporaryFolder(onTestFinished), 'notes');
      const given = {
        config: { server: { max_concurrent_agents: 2 } },
        command: notingCommand(notes, 80),
      };
      const [cut, other] = [
        await openServer(proxy.address, given),
        await openServer(address, given),
      ];
      await other.agent('server', 'start');
      for (let round = 0; round < cuts; round += 1) {
        const before = existsSync(notes) ? placesIn(notes).length : 0;
        await cut.agent('server', 'start');
        const id = (await cut.agent('create', `Cut ${round}`)).out.trim();
        expect((await cut.agent('engineer', id, '--async')).code).toBe(0);
        await vi.waitFor(
          () => expect(existsSync(notes) && placesIn(notes).length > before).toBe(true),
          patience,
        );
        const { pid } = cut.serverFile();

        proxy[how]();
        await vi.waitFor(
          async () => expect(await other.viewOf(id)).toMatchObject({ status: 'complete' }),
          patience,
        );

        expect(placesIn(notes).slice(before), 'never in both at once').toEqual([
          cut.root,
          other.root,
        ]);
        await vi.waitFor(() => expect(isAlive(pid)).toBe(false), patience);
        await proxy.mend();
        const ends = await inPostgres(
          address,
          `select type, owner from journal join attempts using (task_id, attempt)
         where task_id = '${id}' and type in ('completed', 'failed', 'cancelled')`,
        );
        const [{ id: node } = {}] = await inPostgres(
          address,
          'select id from nodes where ended = 0',
        );
        expect(ends).toEqual([{ type: 'completed', owner: node }]);
        expect(await cut.agent('server', 'start')).toMatchObject({ code: 0 });
        expect(await cut.viewOf(id)).toMatchObject({ status: 'complete', attempt: 1 });
      }
    },
  );

  test('goes on when the network is back within its lease', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const proxy = await startDatabaseProxy(address, onTestFinished);
    const notes = join(temporaryFolder(onTestFinished), 'notes');
    const given = {
      config: { server: { max_concurrent_agents: 2 }, store: { lease_seconds: 30 } },
      command: notingCommand(notes, 60),
    };
    const [cut, other] = [await openServer(proxy.address, given), await openServer(address, given)];
    for (const server of [cut, other]) await server.agent('server', 'start');
    const id = (await cut.agent('create', 'Cut')).out.trim();
    await cut.agent('engineer', id, '--async');
    await vi.waitFor(() => expect(existsSync(notes)).toBe(true), patience);

    proxy.silence();
    await new Promise((resolve) => setTimeout(resolve, 4 * seconds));
    await proxy.mend();

    await vi.waitFor(
      async () => expect(await other.viewOf(id)).toMatchObject({ status: 'complete', attempt: 1 }),
      patience,
    );
    expect(placesIn(notes)).toEqual([cut.root]);
    expect(await inPostgres(address, 'select 1 from nodes where ended = 1')).toEqual([]);
  });
});
