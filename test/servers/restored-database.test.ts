import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { gitIn, makeRepository } from '../support/git.ts';
import { inPostgres, noPostgres, ownServer } from '../support/postgres.ts';
import { archived, backUpIn, restoreIn } from '../support/postgres-programs.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;

describe.skipIf(noPostgres !== null)(`a database that was restored ${noPostgres ?? ''}`, () => {
  test('goes on from a point in time before what its folders have', {
    tags: ['slow'],
    timeout: 180 * seconds,
  }, async () => {
    const postgres = await ownServer(archived);
    const { folder, port } = postgres;
    mkdirSync(join(folder, 'archive'));
    chmodSync(join(folder, 'archive'), 0o777);
    const address = `${postgres.address}?schema=restored`;
    const server = await openServer(address, {
      origin: makeRepository(),
      config: { workspace: { mode: 'worktree', merge: 'none' } },
      command: ['date +%s%N > when.txt', 'sleep 1'],
    });
    const start = () => server.agent('server', 'start');
    expect(await start()).toMatchObject({ code: 0 });
    const create = async (title: string): Promise<string> =>
      (await server.agent('create', title)).out.trim();
    const run = async (id: string): Promise<void> =>
      expect(await server.agent('engineer', id)).toMatchObject({ code: 0 });
    const [done, later, atWork] = [
      await create('Done'),
      await create('Later'),
      await create('Work'),
    ];
    await run(done);
    backUpIn(folder, port);
    expect(await server.agent('engineer', atWork, '--async')).toMatchObject({ code: 0 });
    await vi.waitFor(async () => expect((await server.viewOf(atWork)).phase).toBe('acting'));
    await inPostgres(address, "select pg_create_restore_point('before')");
    await run(later);
    const lost = await create('Lost');
    const after = gitIn(server.root, 'rev-parse', `agent/${later}/1`);
    await inPostgres(address, 'select pg_switch_wal()');
    await server.stopServer();
    postgres.stop('fast');

    restoreIn(folder, 'before');
    await postgres.start();
    await vi.waitFor(async () =>
      expect(await inPostgres(address, 'select pg_is_in_recovery() as is')).toEqual([
        { is: false },
      ]),
    );
    expect(await start()).toMatchObject({ code: 0 });

    expect(await server.viewOf(done)).toMatchObject({ status: 'complete', attempt: 1 });
    // The folder of the attempt was given back after that point.
    await vi.waitFor(
      async () =>
        expect(await server.viewOf(atWork)).toMatchObject({
          ...{ status: 'failed', attempt: 1 },
          error: { message: `attempt 1 of ${atWork} is over; its work is on agent/${atWork}/1` },
        }),
      { timeout: 60 * seconds, interval: 500 },
    );
    expect(await server.agent('retry', atWork)).toMatchObject({ code: 0 });
    // The tasks of .beads/issues.jsonl are newer, and are taken from there.
    expect((await server.agent('list')).out).toContain(lost);
    expect(await server.viewOf(later)).toMatchObject({ status: 'complete', attempt: 0 });
    expect(await server.agent('reopen', later)).toMatchObject({ code: 0 });
    const { code, out } = await server.agent('engineer', later);
    expect([code, out]).toEqual([1, expect.stringContaining('its work is on agent/')]);
    expect(await server.agent('retry', later)).toMatchObject({ code: 0 });
    expect((await server.agent('diff', later)).out).toContain('when.txt');
    const branches = gitIn(server.root, 'for-each-ref', '--format=%(objectname)', 'refs/heads');
    expect(branches).toContain(after);
    expect(await server.agent('doctor', '--journal')).toMatchObject({ code: 0 });
  });
});
