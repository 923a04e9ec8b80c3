import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commitIn, gitIn } from '../support/git.ts';
import { openGitProject } from '../support/git-project.ts';
import { temporaryFolder } from '../support/temporary.ts';

/** A project in git whose engineer writes files. */
const open = (
  workspace: object = {},
  files = [{ path: 'b.txt', content: 'new\n' }],
  end = 'done',
) => {
  const turns = [
    { calls: files.map((file) => ({ tool: 'write', arguments: file })) },
    { calls: [{ tool: 'finish', arguments: { status: end, summary: 'done' } }] },
  ];
  return openGitProject([{ turns }], workspace);
};

test("an attempt's changes are shown as a patch that git accepts, and merged on demand, also without a server", {
  tags: ['slow'],
}, async () => {
  const { agent, root, stopServer } = open();
  const id = (await agent('create', 'Add b')).out.trim();
  const early = [await agent('diff', id), await agent('merge', id)];
  const ran = await agent('engineer', id);

  const diff = await agent('diff', id);
  await stopServer();
  const offline = await agent('diff', id, '--json');
  const merged = await agent('merge', id);
  const again = await agent('merge', id, '--json');

  expect(ran.out).toContain(
    `1 file changed, 1 insertion, 0 deletions, on the branch agent/${id}/1`,
  );
  expect(early.map(({ code }) => code)).toEqual([1, 4]);
  expect(early[0]?.err).toContain(`${id} has no attempt with a branch of its own`);
  expect(early[1]?.err).toContain('without an attempt');
  expect(diff.out).toMatch(/^diff --git a\/b\.txt b\/b\.txt\n[\s\S]*\+new\n$/);
  expect(JSON.parse(offline.out)).toEqual({
    task_id: id,
    attempt: 1,
    patch: diff.out,
    guarded: [],
  });
  expect([merged.code, merged.out]).toEqual([
    0,
    expect.stringMatching(`^${id} attempt 1: merged into main \\(`),
  ]);
  expect(gitIn(root, 'show', 'HEAD:b.txt')).toBe('new');
  const head = gitIn(root, 'rev-parse', 'HEAD');
  expect(JSON.parse(again.out)).toEqual({
    ...{ task_id: id, attempt: 1, status: 'merged', tested: [] },
    commit: head,
  });
  expect((await agent('show', id)).out).toContain(` as ${head.slice(0, 12)}\n`);
  const logged = (await agent('logs', id)).out.split('\n');
  expect(logged.filter((line) => line.includes('merged into main'))).toEqual([
    expect.stringContaining(`merged into main (${head.slice(0, 12)})`),
  ]);
  expect((await agent('diff', id)).err).toContain(`it is merged: git show ${head.slice(0, 12)}`);
});

test('show, the logs and the diff name generated files that came in', async () => {
  const files = ['b.txt', 'coverage/index.html'].map((path) => ({ path, content: 'new\n' }));
  const { agent, root } = open({}, files);
  const id = (await agent('create', 'Add b')).out.trim();
  await agent('engineer', id);

  const [shown, logs] = [await agent('show', id), await agent('logs', id)];

  for (const { out } of [shown, logs]) expect(out).toContain('1 changed file in coverage/, which');
  const patch = join(temporaryFolder(), 'patch');
  writeFileSync(patch, (await agent('diff', id)).out);
  expect(readFileSync(patch, 'utf8')).toMatch(
    /^# 1 changed file in coverage\/, which programs generate; .*\n\ndiff --git /,
  );
  gitIn(root, 'apply', patch);
});

test.each([
  ['blank lines at its end', 'one\n2\nthree\n\n \n', 'one\ntwo\nthree\n\n \n'],
  ['spaces at its end', 'two \t\n', null],
  ['line ends of Windows', 'one\r\n2\r\n', 'one\r\ntwo\r\n'],
  ['characters that a terminal does not show', '\u001b[1m\u000c\u202eb\n', null],
])(
  'git takes from the patch of a file with %s what the agent wrote',
  {
    tags: ['slow'],
  },
  async (_, content, before) => {
    const { agent, root } = open({}, [{ path: 'b.txt', content }]);
    if (before !== null) commitIn(root, 'b.txt', before);
    const id = (await agent('create', 'Add b')).out.trim();
    await agent('engineer', id);

    const patch = join(temporaryFolder(), 'patch');
    writeFileSync(patch, (await agent('diff', id)).out);
    gitIn(root, 'apply', patch);
    const applied = readFileSync(join(root, 'b.txt'), 'utf8');
    gitIn(root, 'apply', '--reverse', patch);
    writeFileSync(patch, JSON.parse((await agent('diff', id, '--json')).out).patch);
    gitIn(root, 'apply', patch);

    expect([applied, readFileSync(join(root, 'b.txt'), 'utf8')]).toEqual([content, content]);
  },
);

test('a patch whose bytes are not UTF-8 says so, and a merge takes them as they are', {
  tags: ['slow'],
}, async () => {
  const command = String.raw`printf 'caf\351\n' > b.txt`;
  const turns = [{ calls: [{ tool: 'bash', arguments: { command } }] }];
  const { agent, root } = openGitProject([{ turns }], { mode: 'worktree' });
  const id = (await agent('create', 'Add b', '--role', 'engineer')).out.trim();
  await agent('run');

  const { err } = await agent('diff', id);
  await agent('merge', id);

  expect(err).toContain(`to take them: agent merge ${id}`);
  expect(readFileSync(join(root, 'b.txt'), 'latin1')).toBe('caf\u00e9\n');
});

test('diff names protected files first, and git still accepts the patch', {
  tags: ['slow'],
}, async () => {
  const { agent, root, stopServer } = open(
    {},
    ['b.txt', '.github/workflows/ci.yml', 'pkg/.npmrc', '-- a\n/.env'].map((path) => ({
      path,
      content: 'new\n',
    })),
  );
  const id = (await agent('create', 'Add b')).out.trim();
  await agent('engineer', id);
  await stopServer();

  const diff = await agent('diff', id);
  const json = JSON.parse((await agent('diff', id, '--json')).out);
  const patch = join(temporaryFolder(), 'patch');
  writeFileSync(patch, diff.out);
  gitIn(root, 'apply', patch);

  expect(diff.out.split('\n').slice(0, 5)).toEqual([
    expect.stringMatching(/^# runs on your machine: .*a merge puts them into the project$/),
    '#   "-- a\\n/.env"',
    '#   .github/workflows/ci.yml',
    '#   pkg/.npmrc',
    '',
  ]);
  expect(json.guarded).toEqual(['-- a\n/.env', '.github/workflows/ci.yml', 'pkg/.npmrc']);
  expect(gitIn(root, 'status', '--porcelain', '--untracked-files=all').split('\n')).toContain(
    '?? pkg/.npmrc',
  );
});

test('a merge with an obstacle changes nothing, names it, and exits with 4', {
  tags: ['slow'],
}, async () => {
  const { agent, root } = open();
  const id = (await agent('create', 'Add b')).out.trim();
  await agent('engineer', id);
  commitIn(root, 'b.txt', 'mine\n');

  const forward = await agent('merge', id, '--ff');
  const squash = await agent('merge', id, '--squash', '--json');

  expect([forward.code, forward.err]).toEqual([4, expect.stringContaining('main has moved on')]);
  expect(squash.code).toBe(4);
  expect(JSON.parse(squash.out)).toMatchObject({
    ...{ task_id: id, status: 'refused', code: 'merge_conflict', with: [] },
    paths: ['b.txt'],
  });
  expect(gitIn(root, 'show', 'HEAD:b.txt')).toBe('mine');
});

test('with workspace.mode shared agents work in the project folder, and diff says so', async () => {
  const { agent, root } = open({ mode: 'shared' });
  const id = (await agent('create', 'Add b')).out.trim();
  await agent('engineer', id);

  const diff = await agent('diff', id);

  expect(gitIn(root, 'status', '--porcelain', 'b.txt')).toBe('?? b.txt');
  expect(diff.err).toContain(
    'agents work in the project folder, shared by all attempts: see git diff',
  );
});

test.each([['../x'], ['/etc'], ['.git/config'], ['']])(
  'workspace.copy refuses %j by name',
  async (path) => {
    const { code, err } = await open({ copy: [path] }).agent('doctor');

    expect([code, err]).toEqual([78, expect.stringContaining('workspace.copy.0')]);
  },
);

test('the work of a failed attempt is merged only with --force, with and without a server, also after a close by hand', {
  tags: ['slow'],
}, async () => {
  const { agent, root, stopServer } = open({}, [{ path: 'b.txt', content: 'new\n' }], 'failed');
  const id = (await agent('create', 'Add b')).out.trim();
  await agent('engineer', id);

  const results = readFileSync(
    join(root, '.beads', 'tasks', `task-${id}`, '30-results.md'),
    'utf8',
  );
  const online = await agent('merge', id);
  await agent('close', id);
  const closed = await agent('merge', id);
  const listed = await agent('list');
  const shown = await agent('show', id);
  await stopServer();
  const offline = await agent('merge', id);
  const listedOffline = await agent('list');
  const before = gitIn(root, 'ls-files');
  const forced = await agent('merge', id, '--force');

  expect(results).not.toContain('Take them:');
  expect(results).toContain(`agent merge ${id} --attempt 1 --force`);
  for (const { code, err } of [online, closed, offline])
    expect([code, err]).toEqual([
      4,
      expect.stringContaining(`task ${id} is failed (attempt 1): merge is not allowed`),
    ]);
  for (const { out } of [listed, listedOffline]) {
    expect(out).toMatch(/ complete +engineer/);
    expect(out).not.toContain('merged');
  }
  expect(shown.out).toMatch(/1 file \+1 -0 on agent\/[^,]+, not complete/);
  expect(shown.out).not.toContain('agent merge');
  expect(before).toBe('a.txt');
  expect([forced.code, gitIn(root, 'show', 'HEAD:b.txt')]).toEqual([0, 'new']);
});

test('a task that is sent back after its merge shows which attempt was merged', {
  tags: ['slow'],
}, async () => {
  const { agent } = open();
  const id = (await agent('create', 'Add b')).out.trim();
  await agent('engineer', id);
  await agent('merge', id);
  await agent('review', id, '--request-changes', '--comment', 'b.txt', 'Say more');
  await agent('wait', id);

  const shown = await agent('show', id);
  const { attempts } = JSON.parse((await agent('show', id, '--json')).out);

  expect(shown.out).toMatch(
    /^ {2}attempts +1 {2}engineer {2}complete {2}\S+ s {2}.*merged \d{4}-/m,
  );
  expect(attempts.map(({ merged_at }: { merged_at?: string }) => merged_at !== undefined)).toEqual([
    true,
    false,
  ]);
});

test('the log says what is copied into a worktree before it is there', {
  tags: ['slow'],
}, async () => {
  const { agent, root } = open({ copy: ['node_modules'] });
  mkdirSync(join(root, 'node_modules'));
  writeFileSync(join(root, 'node_modules', 'x.js'), 'x');
  const id = (await agent('create', 'Add b')).out.trim();

  await agent('engineer', id);

  const logs = (await agent('logs', id)).out;
  expect(logs).toContain('makes the worktree, with a copy of node_modules');
});
