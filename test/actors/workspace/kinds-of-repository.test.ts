import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { isRoot, notRoot, testUnless } from '../../support/needs.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const id = 'bd-a1' as TaskId;

const refused: readonly (readonly [string, (project: string) => void, string])[] = [
  [
    'sparse',
    (project) => gitIn(project, 'sparse-checkout', 'set', 'lib'),
    'run git sparse-checkout disable',
  ],
  [
    'with a split index',
    (project) => gitIn(project, 'update-index', '--split-index'),
    'run git update-index --no-split-index',
  ],
  [
    'belongs to another folder',
    (project) => gitIn(project, 'config', 'core.worktree', temporaryFolder()),
    'core.worktree of this repository points to another folder',
  ],
  [
    'a partial clone',
    (project) => gitIn(project, 'config', 'remote.origin.promisor', 'true'),
    'this repository is a partial clone; agents need all files',
  ],
  [
    'of an unknown kind',
    (project) => gitIn(project, 'config', 'extensions.refstorage', 'reftable'),
    'this repository uses extensions.refstorage, which is not supported',
  ],
];

const hub = (project: string): void => {
  gitIn(project, 'clone', '--quiet', '--bare', project, join(project, '.bare'));
  rmSync(join(project, '.git'), { recursive: true });
  writeFileSync(join(project, '.git'), 'gitdir: ./.bare\n');
};

const borrowed = (project: string): void => {
  const store = join(temporaryFolder(), 'store');
  gitIn(project, 'clone', '--quiet', '--bare', project, store);
  writeFileSync(join(project, '.git/objects/info/alternates'), `${store}/objects\n`);
};

const notPossible: readonly (readonly [string, (project: string) => void, string])[] = [
  ...refused,
  ['with a branch named agent', (project) => gitIn(project, 'branch', 'agent'), 'git branch -m '],
  [
    'with a packed branch named agent',
    (project) => {
      gitIn(project, 'branch', 'agent');
      gitIn(project, 'pack-refs', '--all');
    },
    'run git branch -m agent <another name>',
  ],
  [
    "with a branch named as the task's own",
    (project) => gitIn(project, 'branch', 'agent/bd-a1'),
    'run git branch -m agent/bd-a1 <another name>',
  ],
  ['a hub', hub, 'make a worktree and use it as the project: git worktree add main'],
  [
    'in a folder of its own',
    (project) =>
      gitIn(project, 'init', '--quiet', '--separate-git-dir', join(temporaryFolder(), 'x')),
    'which does not name this folder; if that is intended, run git config core.worktree',
  ],
  ['borrowing objects', borrowed, 'which agents could read; run git repack -a -d && rm '],
];

test.each(notPossible)('before an attempt, a repository %s is told', async (_, make, why) => {
  const project = makeRepository();
  const folder = temporaryFolder();
  const before = await worktreesOf(project, folder);
  expect(await before.problem(id)).toBeNull();

  make(project);

  const { path, problem, remedy } = (await before.problem(id)) ?? {};
  expect(path).toBe(project);
  expect(`${problem}; ${remedy}`).toContain(why);
  await expect(before.open(anAttempt())).rejects.toThrow(why);
  if (!why.includes('bd-a1'))
    expect((await worktreesOf(project, folder)).describe()).toContain(why);
});

test('a branch below the name that an attempt would have is passed by', async () => {
  const project = makeRepository();
  gitIn(project, 'branch', 'agent/bd-a1/1/mine');

  await (await worktreesOf(project, temporaryFolder())).open(anAttempt());

  expect(gitIn(project, 'branch', '--list', 'agent/*', '--format=%(refname:short)')).toBe(
    'agent/bd-a1/1-2\nagent/bd-a1/1/mine',
  );
});

test('a lock that was left is named where it is, with what to do', async () => {
  const project = makeRepository();
  const lock = join(project, '.git/refs/heads/agent/bd-a1/1.lock');
  mkdirSync(dirname(lock), { recursive: true });
  writeFileSync(lock, '');
  const workspace = await worktreesOf(project, temporaryFolder());

  const { message } = (await workspace.open(anAttempt()).catch((error: Error) => error)) as Error;

  expect(message).toContain(`Unable to create '${lock}'`);
  expect(message).toContain(`if no git runs in this project, remove it: rm ${lock}`);
});

testUnless(isRoot).each(['objects', 'refs'])(
  'a read-only folder .git/%s refuses the run by its own path',
  async (name) => {
    const project = makeRepository();
    const folder = join(project, '.git', name);
    chmodSync(folder, 0o555);
    const workspace = await worktreesOf(project, temporaryFolder());

    const found = await workspace.problem?.(id);
    chmodSync(folder, 0o755);

    expect(found?.problem).toContain(`${folder} cannot be written (EACCES: permission denied`);
    expect(found?.remedy).toBe('give this user the right to write in it');
  },
);

test.each(refused)('a repository that is %s is refused by name', async (_, make, why) => {
  const project = makeRepository();
  make(project);
  const workspace = await worktreesOf(project, temporaryFolder());

  await expect(workspace.open(anAttempt())).rejects.toThrow(why);
  expect(workspace.describe()).toContain(why);
});

const madeWithSha256 = (): string => {
  const project = temporaryFolder();
  gitIn(project, 'init', '--quiet', '--initial-branch=main', '--object-format=sha256');
  gitIn(project, 'config', 'user.name', 'Amy');
  gitIn(project, 'config', 'user.email', 'amy@localhost');
  commitIn(project, 'a.txt', 'one\n');
  return project;
};

const linkedWorktree = (): string => {
  const folder = join(temporaryFolder(), 'linked');
  gitIn(makeRepository(), 'worktree', 'add', '--quiet', '-b', 'feature', folder);
  return folder;
};

const submodule = (): string => {
  const [outer, inner] = [makeRepository(), makeRepository()];
  gitIn(outer, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', inner, 'lib');
  gitIn(outer, 'commit', '--quiet', '-m', 'add lib');
  for (const [key, value] of [
    ['user.name', 'Amy'],
    ['user.email', 'amy@localhost'],
  ] as const)
    gitIn(join(outer, 'lib'), 'config', key, value);
  return join(outer, 'lib');
};

test.each([
  ['with SHA-256', madeWithSha256],
  ['that is a worktree beside others', linkedWorktree],
  ['that is a submodule', submodule],
] as const)(
  'work on a project %s is saved, shown and merged',
  { tags: ['slow'] },
  async (_, make) => {
    const project = make();
    const workspace = await worktreesOf(project, temporaryFolder());
    const { root } = await workspace.open(anAttempt());
    writeFileSync(join(root, 'b.txt'), 'new\n');

    expect((await workspace.diff(id, 1))?.patch).toContain('+new');
    expect(await workspace.save(anAttempt(), 'x')).toMatchObject({ files: 1, insertions: 1 });
    expect(await landAlone(workspace, id, 1, 'squash', 'x')).toMatchObject({ status: 'merged' });
    expect(readFileSync(join(project, 'b.txt'), 'utf8')).toBe('new\n');
    expect(gitIn(project, 'status', '--porcelain')).toBe('');
    gitIn(project, 'fsck', '--strict');
  },
);

const nobody = 65_534;
const asNobody = `
  import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
  import { setTimeout as delay } from 'node:timers/promises';
  const [module, projectRoot, folder] = process.argv.slice(2);
  const { chooseWorkspace } = await import(module);
  const { landAlone } = await import(new URL('../../../../test/support/land-alone.mjs', module).href);
  const attempt = { taskId: 'bd-a1', attempt: 1, role: 'engineer', options: {} };
  const environment = { PATH: '/usr/bin:/bin' };
  const workspace = await chooseWorkspace({ mode: 'worktree', projectRoot, folder, copies: [], environment, sandboxed: false });
  const { root } = await workspace.open(attempt);
  writeFileSync(root + '/b.txt', 'new');
  mkdirSync(root + '/shut/inside', { recursive: true });
  mkdirSync(root + '/unentered');
  for (const path of ['/unentered/f', '/.gitignore']) writeFileSync(root + path, 'x');
  chmodSync(root + '/unentered', 0o400);
  for (const path of ['/.gitignore', '/shut/inside', '/shut', '']) chmodSync(root + path, 0);
  const saved = await workspace.save(attempt, 'x');
  const left = () => readdirSync(folder + '/removed');
  while (left().length > 0) await delay(10);
  console.log(JSON.stringify({ files: saved?.files, notes: saved?.notes.toSorted(), merged: (await landAlone(workspace, 'bd-a1', 1, 'squash', 'x')).status }));
`;

testUnless(notRoot)(
  'an ordinary user saves and merges, and folders of mode 000 are removed with the worktree',
  { tags: ['slow', 'root'] },
  () => {
    const [project, state] = [makeRepository(), join(temporaryFolder(), 'state')];
    const script = join(state, '..', 'driver.mjs');
    mkdirSync(state);
    writeFileSync(script, asNobody);
    const built = new URL(
      '../../../dist/actors/workspace/worktrees/select-workspace.js',
      import.meta.url,
    ).href;
    for (const folder of [project, join(state, '..')])
      execFileSync('chown', ['-R', `${nobody}:${nobody}`, folder], { stdio: 'ignore' });
    const said = execFileSync(process.execPath, [script, built, project, state], {
      uid: nobody,
      gid: nobody,
      cwd: '/',
      encoding: 'utf8',
      timeout: 60_000,
    });

    expect(JSON.parse(said)).toEqual({
      files: 1,
      notes: ['.gitignore', 'shut', 'unentered/f'].map(
        (name) => `${name} was not saved: it cannot be read`,
      ),
      merged: 'merged',
    });
  },
);
