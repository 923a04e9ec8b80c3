import { spawnSync } from 'node:child_process';
import { expect, test, vi } from 'vitest';
import { makeRepository } from '../support/git.ts';
import { describeUnless, noSandbox } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { openServer } from '../support/servers.ts';

const seconds = 1_000;
/** Runs a program on a machine without bubblewrap. */
const withoutBubblewrap = [
  ...['unshare', '-rm', 'sh', '-c'],
  ...['mount --bind /dev/null /usr/bin/bwrap && exec "$@"', 'sh'],
];
const [command = '', ...rest] = withoutBubblewrap;
const cannotHide =
  spawnSync(command, [...rest, 'true']).status === 0
    ? null
    : 'bubblewrap cannot be hidden from a program here (needs unshare)';

describeUnless(noPostgres ?? noSandbox ?? cannotHide)('a server that cannot confine agents', () => {
  test('runs none, says so, and leaves its tasks to the others', {
    tags: ['slow'],
    timeout: 120 * seconds,
  }, async () => {
    const address = await freshAddress();
    const given = {
      origin: makeRepository(),
      config: { sandbox: { mode: 'auto' }, workspace: { mode: 'worktree', merge: 'none' } },
    };
    const [one, two] = [await openServer(address, given), await openServer(address, given)];
    const server = one.start(
      'agent-server',
      ['--server'],
      { DATABASE_URL: address },
      withoutBubblewrap,
    );
    let said = '';
    server.stderr?.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
    await vi.waitFor(
      async () => expect(await one.agent('server', 'status')).toMatchObject({ code: 0 }),
      { timeout: 20 * seconds },
    );
    const id = (await one.agent('create', 'Work')).out.trim();
    expect(await one.agent('engineer', id, '--async')).toMatchObject({ code: 0 });
    await vi.waitFor(async () => expect(await one.viewOf(id)).toMatchObject({ status: 'queued' }));
    expect((await one.agent('explain', id)).out).toContain(
      'this server runs no engineer; another one must have room',
    );
    expect((await one.agent('nodes')).out).toMatch(/\bnone$/m);
    expect(said).toContain('runs no agents');

    expect(await two.agent('server', 'start')).toMatchObject({ code: 0 });
    await vi.waitFor(
      async () => expect(await two.viewOf(id)).toMatchObject({ status: 'complete' }),
      { timeout: 30 * seconds, interval: 500 },
    );
    const owners = await inPostgres(address, 'select distinct owner from attempts');
    expect(owners).toHaveLength(1);
  });
});
