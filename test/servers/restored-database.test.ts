import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { isAlive } from '../../src/actors/process/pid.ts';
import { gitIn, makeRepository } from '../support/git.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres, ownServer } from '../support/postgres.ts';
import { archived, backUpIn, restoreIn } from '../support/postgres-programs.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;
const patience = { timeout: 60 * seconds, interval: 200 };

/** Two servers of one store: the first in the foreground, whose end is collected. */
const twoServers = async (address: string) => {
  const [one, two] = [await openServer(address), await openServer(address)];
  const ended = one.collect(
    one.start('agent-server', ['--server'], { DATABASE_URL: address }, ['env', 'NO_COLOR=1']),
  );
  await vi.waitFor(() => expect(one.serverFile()).not.toBeNull(), patience);
  expect(await two.agent('server', 'start')).toMatchObject({ code: 0 });
  const { pid } = two.serverFile();
  /** The log of the second, after it has ended by itself. */
  const logOfTwo = async (): Promise<string> => {
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), patience);
    return readFileSync(join(two.stateDir, 'server.log'), 'utf8');
  };
  return { one, two, ended, logOfTwo };
};

const inFile = (root: string, id: string) =>
  vi.waitFor(
    () => expect(readFileSync(join(root, '.beads', 'issues.jsonl'), 'utf8')).toContain(id),
    patience,
  );

const archivedServer = async () => {
  const postgres = await ownServer(archived);
  mkdirSync(join(postgres.folder, 'archive'));
  chmodSync(join(postgres.folder, 'archive'), 0o777);
  return { ...postgres, address: `${postgres.address}?schema=restored` };
};

const whenRestored = (address: string) =>
  vi.waitFor(
    async () =>
      expect(await inPostgres(address, 'select pg_is_in_recovery() as is')).toEqual([
        { is: false },
      ]),
    patience,
  );

describeUnless(noPostgres)('a database that was restored', () => {
  test('goes on from a point in time before what its folders have', {
    tags: ['slow'],
    timeout: 180 * seconds,
  }, async () => {
    const postgres = await archivedServer();
    const { folder, port, address } = postgres;
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
    await whenRestored(address);
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

  test('ends the servers that it was restored under, which say what to do', {
    tags: ['slow'],
    timeout: 180 * seconds,
  }, async () => {
    const postgres = await archivedServer();
    const { folder, port, address } = postgres;
    const { one, two, ended, logOfTwo } = await twoServers(address);
    await one.agent('create', 'Kept');
    backUpIn(folder, port);
    await inPostgres(address, "select pg_create_restore_point('before')");
    const lost = (await one.agent('create', 'Lost')).out.trim();
    await one.agent('engineer', lost);
    await inFile(one.root, lost);
    await inPostgres(address, 'select pg_switch_wal()');
    postgres.stop('fast');
    restoreIn(folder, 'before');
    await postgres.start();
    await whenRestored(address);

    const said = `the database ${address.replace(/\?.*/, '')} was restored to an earlier state while it was in use`;
    expect(await ended).toMatchObject({ code: 1, err: expect.stringContaining(said) });
    expect(await logOfTwo()).toContain(said);
    expect((await ended).err).toContain('start the server again');
    for (const server of [one, two])
      expect(await server.agent('server', 'start')).toMatchObject({ code: 0 });
    // The file is newer, and was not written as the restored tables are.
    await vi.waitFor(async () => expect((await two.agent('list')).out).toContain('Lost'), patience);
  });

  test('ends the servers whose tables were dropped, and made anew by one that starts', {
    tags: ['slow'],
    timeout: 180 * seconds,
  }, async () => {
    const address = await freshAddress();
    const { one, two, ended, logOfTwo } = await twoServers(address);
    const id = (await one.agent('create', 'Of before')).out.trim();
    await inFile(one.root, id);
    const schema = new URL(address).searchParams.get('schema');
    await inPostgres(address, `drop schema ${schema} cascade`);
    expect(await two.agent('store', 'migrate')).toMatchObject({ code: 0 });
    expect(await ended).toMatchObject({
      code: 1,
      err: expect.stringMatching(/the tables in .* (were made anew|are gone)/),
    });
    await logOfTwo();

    expect(await one.agent('server', 'start')).toMatchObject({ code: 0 });
    expect((await one.agent('list')).out).toContain(id);
  });
});
