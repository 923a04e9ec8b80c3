import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { serverNameOf } from '../../src/cli/config/places/project.ts';
import { gitIn, makeRepository } from '../support/git.ts';
import { isLong } from '../support/long.ts';
import { describeUnless } from '../support/needs.ts';
import { freshAddress, inPostgres, noPostgres } from '../support/postgres.ts';
import { randomFrom, seed } from '../support/random.ts';
import { openServer } from '../support/servers.ts';
import { temporaryFolder } from '../support/temporary.ts';

const seconds = 1_000;
const kills = isLong ? 40 : 3;
const merging = 'sleep 3';
const slow = { tags: ['slow'], timeout: 120 * seconds };

/** Two servers, each with a clone, and a bare repository for the work if `isShared`. */
const openServers = async (
  command: string | readonly string[],
  {
    isShared = true,
    agent = {},
    merge = {},
  }: { isShared?: boolean; agent?: object; merge?: object } = {},
) => {
  const address = await freshAddress();
  const origin = makeRepository();
  const bare = join(temporaryFolder(), 'work.git');
  gitIn(origin, 'clone', '--quiet', '--bare', '--no-hardlinks', origin, bare);
  const given = {
    origin,
    command,
    config: {
      server: { max_concurrent_agents: 1 },
      agent: { on_interrupted: 'repeat', ...agent },
      merge,
      workspace: {
        ...{ mode: 'worktree', merge: 'none' },
        ...(isShared ? { repository: bare } : {}),
      },
    },
  };
  const [one, two] = [await openServer(address, given), await openServer(address, given)];
  for (const server of [one, two])
    expect(await server.agent('server', 'start')).toMatchObject({ code: 0 });
  const begin = async (...flags: readonly string[]): Promise<string> => {
    const id = (await one.agent('create', 'Long')).out.trim();
    expect(await one.agent('engineer', id, '--async', ...flags)).toMatchObject({ code: 0 });
    return id;
  };
  const stepsOf = (id: string) =>
    inPostgres(address, `select key, result from steps where task_id = '${id}'`);
  return { address, bare, one, two, begin, stepsOf };
};
type Servers = Awaited<ReturnType<typeof openServers>>;

const untilOver = (server: Servers['one'], id: string) =>
  vi.waitFor(
    async () => {
      const view = await server.viewOf(id);
      expect(['complete', 'failed']).toContain(view.status);
      return view;
    },
    { timeout: 60 * seconds, interval: 500 },
  );

/** The first command has ended, and the second one runs. */
const untilSecond = (stepsOf: Servers['stepsOf'], id: string) =>
  vi.waitFor(
    async () =>
      expect((await stepsOf(id)).map(({ key }) => key)).toContainEqual(
        expect.stringMatching(/^act:2:/),
      ),
    { timeout: 30 * seconds, interval: 200 },
  );

describeUnless(noPostgres)('work goes from server to server', () => {
  test('an attempt goes on elsewhere with what its agent had changed', slow, async () => {
    const { one, two, begin, stepsOf } = await openServers([
      'echo one > one.txt',
      'cat one.txt > two.txt && sleep 2',
    ]);
    const id = await begin('--verify', 'test -f one.txt && test -f two.txt');
    await untilSecond(stepsOf, id);
    await one.stopServer('SIGKILL');

    expect(await untilOver(two, id)).toMatchObject({ status: 'complete', attempt: 1 });
    expect((await two.agent('diff', id)).out).toMatch(/one\.txt[\s\S]*two\.txt/);
    expect((await two.agent('logs', id)).out).toContain(
      'goes on here with what it had changed on another server',
    );
    expect(gitIn(two.root, 'show', `agent/${id}/1:two.txt`)).toBe('one');
  });

  test(
    'an attempt that is verified when its server dies is verified with its work',
    slow,
    async () => {
      const { one, two, begin } = await openServers('echo one > one.txt');
      const id = await begin('--verify', 'test -f one.txt && sleep 2');
      await vi.waitFor(async () => expect((await one.viewOf(id)).phase).toBe('verifying'), {
        timeout: 30 * seconds,
      });
      await one.stopServer('SIGKILL');

      expect(await untilOver(two, id)).toMatchObject({ status: 'complete', attempt: 1 });
      expect(gitIn(two.root, 'show', `agent/${id}/1:one.txt`)).toBe('one');
    },
  );

  test('without such a repository, lost work is not taken for complete', slow, async () => {
    const { one, two, begin } = await openServers('echo one > one.txt', {
      isShared: false,
      agent: { max_retries: 0 },
    });
    const id = await begin('--verify', 'sleep 2');
    await vi.waitFor(async () => expect((await one.viewOf(id)).phase).toBe('verifying'), {
      timeout: 30 * seconds,
    });
    await one.stopServer('SIGKILL');

    expect(await untilOver(two, id)).toMatchObject({ status: 'failed' });
    expect((await two.agent('show', id)).out).toContain('on a server that stopped');
  });

  test('any server shows and merges the work of one that runs', slow, async () => {
    const { one, two, begin } = await openServers('echo one > one.txt');
    const id = await begin();
    await untilOver(one, id);

    expect((await two.agent('show', id)).out).toContain(`on agent/${id}/1, not merged`);
    expect((await two.agent('diff', id)).out).toContain('+one');
    expect(await two.agent('merge', id)).toMatchObject({ code: 0 });
    expect(gitIn(two.root, 'show', 'HEAD:one.txt')).toBe('one');
  });

  test('a merge that a server did not end lands in no other clone, and says so', slow, async () => {
    const merge = { verify: [merging] };
    const { one, two, begin } = await openServers('echo one > one.txt', { merge });
    const [id, other] = [await begin(), await begin()];
    for (const each of [id, other]) await untilOver(one, each);
    const before = gitIn(two.root, 'rev-parse', 'HEAD');
    const lost = one.agent('merge', id, other);
    await vi.waitFor(async () => expect((await one.viewOf(id)).work.merge.state).toBe('testing'), {
      ...{ timeout: 30 * seconds, interval: 200 },
    });
    await one.stopServer('SIGKILL');
    await lost;

    const refused =
      /not merged: it was to land in the clone of the server \S+, which ended: merge it again/;
    for (const each of [id, other])
      await vi.waitFor(async () => expect((await two.agent('logs', each)).out).toMatch(refused), {
        timeout: 30 * seconds,
        interval: 500,
      });
    expect(gitIn(two.root, 'rev-parse', 'HEAD')).toBe(before);
    expect(await two.agent('merge', id, other)).toMatchObject({ code: 0 });
    expect(gitIn(two.root, 'log', '--format=%b', '-1')).toContain('Task: ');
  });

  test(
    'without such a repository, any server shows the work, and says where it is merged',
    slow,
    async () => {
      const { one, two, begin } = await openServers('echo one > one.txt', { isShared: false });
      const id = await begin();
      await untilOver(one, id);

      expect((await two.agent('diff', id)).out).toContain('+one');
      expect(await two.agent('merge', id)).toMatchObject({
        code: 4,
        err: expect.stringContaining(`the work of ${id} is on another server: merge it there`),
      });
      expect(await one.agent('merge', id)).toMatchObject({ code: 0 });
    },
  );

  test('a task that follows has the work, on whichever server it runs', slow, async () => {
    const { one, two, bare, begin } = await openServers('cp a.txt copy-$(date +%s%N).txt');
    const first = await begin();
    await untilOver(one, first);
    await one.stopServer();
    const next = (await two.agent('create', 'Next', '--deps', first)).out.trim();
    expect(await two.agent('engineer', next, '--async')).toMatchObject({ code: 0 });
    await untilOver(two, next);

    expect(
      gitIn(two.root, 'ls-tree', '--name-only', `agent/${next}/1`).match(/copy-/g),
    ).toHaveLength(2);
    expect((await two.agent('diff', first)).out).toContain('copy-');
    expect(await two.agent('merge', first)).toMatchObject({ code: 0 });

    const shared = () => gitIn(bare, 'for-each-ref', '--format=%(refname)', 'refs/heads/agent');
    expect(shared()).toMatch(
      new RegExp(`agent/${first}/1[^]*agent/${next}/1|agent/${next}/1[^]*agent/${first}/1`),
    );
    expect(await two.agent('merge', next)).toMatchObject({ code: 0 });
    expect((await two.agent('prune')).out).toContain(`agent/${first}/1`);
    expect(shared()).toBe('');
  });

  test(`${kills} times kill -9 of the server that has an attempt: no change of its agent is lost (seed ${seed})`, {
    tags: ['slow'],
    timeout: (60 + 20 * kills) * seconds,
  }, async () => {
    const random = randomFrom(seed);
    const turns = Array.from({ length: 3 * kills }, (_, n) => `echo ${n} >> log.txt; sleep 0.3`);
    const { one, two, begin, address } = await openServers(turns);
    const id = await begin('--max-turns', String(3 * turns.length));
    for (let kill = 0; kill < kills; kill += 1) {
      await new Promise((resolve) => setTimeout(resolve, 500 + random() * 1_500));
      const [holder] = await inPostgres(
        address,
        `select nodes.name from actors join nodes on nodes.id = actors.owner where actors.id = '${id}' and actors.pending = 1`,
      );
      if (holder === undefined) break;
      const isOne = holder['name'] === serverNameOf({ ...one, defaultDir: one.stateDir });
      const [dead, other] = isOne ? [one, two] : [two, one];
      await dead.stopServer('SIGKILL');
      await vi.waitFor(
        async () => expect((await other.viewOf(id)).phase).toMatch(/thinking|acting/),
        { timeout: 40 * seconds, interval: 200 },
      );
      expect(await dead.agent('server', 'start')).toMatchObject({ code: 0 });
    }

    expect(await untilOver(two, id)).toMatchObject({ status: 'complete', attempt: 1 });
    const patch = (await one.agent('diff', id)).out;
    const lines = [...patch.matchAll(/^\+(\d+)$/gm)].map(([, line]) => Number(line));
    // A call that was interrupted is made again, so a line may be there twice.
    expect([...new Set(lines)]).toEqual(turns.map((_, n) => n));
  });

  test(
    'a repository that is gone stops no attempt, and the log says what it means',
    slow,
    async () => {
      const { one, two, bare, begin } = await openServers([
        'echo one > one.txt',
        'echo two > two.txt',
      ]);
      rmSync(bare, { recursive: true });
      await one.stopServer();
      expect(await one.agent('server', 'start')).toMatchObject({ code: 0 });
      await vi.waitFor(async () =>
        expect((await one.agent('server', 'logs')).out).toMatch(
          /make one: git clone --bare.*the common repository cannot be used/,
        ),
      );
      const id = await begin();

      expect(await untilOver(two, id)).toMatchObject({ status: 'complete' });
      const log = (await one.agent('logs', id)).out;
      expect(log.match(/other servers could not go on from here/g)).toHaveLength(1);
      expect(log).toContain('is no bare repository');
    },
  );
});
