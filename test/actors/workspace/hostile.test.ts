import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { isLong } from '../../support/long.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const id = 'bd-a1' as TaskId;
const treeOf = (project: string, branch = 'agent/bd-a1/1'): readonly string[] =>
  gitIn(project, 'ls-tree', '-r', '--name-only', branch).split('\n');

test('names that git refuses and entries that are no files are named and not saved; the rest is saved', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  for (const name of ['.GIT', 'git~1', '.git.', 'a\\b', 'b.txt'])
    writeFileSync(join(root, name), 'x\n');
  execFileSync('mkfifo', [join(root, 'pipe')]);
  rmSync(join(root, 'a.txt'));
  execFileSync('mkfifo', [join(root, 'a.txt')]);

  const saved = await workspace.save(anAttempt(), 'x');

  expect(treeOf(project)).toEqual(['a.txt', 'b.txt']);
  expect([...(saved?.notes ?? [])].sort()).toEqual([
    '.GIT was not saved: git refuses this name',
    '.git. was not saved: git refuses this name',
    'a.txt was not saved: it is a pipe, socket or device',
    'a\\b was not saved: git refuses this name',
    'git~1 was not saved: git refuses this name',
    'pipe was not saved: it is a pipe, socket or device',
  ]);
});

test('an empty folder with a protected name, as the sandbox leaves one, is neither saved nor named', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'b.txt'), 'x\n');
  mkdirSync(join(root, '.beads'));
  mkdirSync(join(root, 'part', '.beads'), { recursive: true });
  writeFileSync(join(root, 'part', '.beads', 'issues.jsonl'), '{}\n');

  const saved = await workspace.save(anAttempt(), 'x');

  expect(saved?.notes).toEqual([
    'part/.beads was not saved: other programs run or trust it, so agents may not create it',
  ]);
  expect(treeOf(project)).toEqual(['a.txt', 'b.txt']);
});

test('the target of a link with a protected name is protected like the link, also where nothing exists yet', async () => {
  const project = makeRepository();
  mkdirSync(join(project, 'editor'));
  mkdirSync(join(project, 'tools/hooks'), { recursive: true });
  writeFileSync(join(project, 'editor/settings.json'), '{}\n');
  writeFileSync(join(project, 'tools/hooks/readme'), 'x\n');
  for (const [target, link] of [
    ['a', '.vscode'],
    ['editor', 'a'],
    ['tools/hooks', '.husky'],
    ['cfg', '.claude'],
    ['ci', '.github'],
  ] as const)
    symlinkSync(target, join(project, link));
  gitIn(project, 'add', '.');
  gitIn(project, 'commit', '--quiet', '-m', 'links');
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  for (const path of ['cfg', 'ci', 'part']) mkdirSync(join(root, path));
  const evil = [
    'editor/tasks.json',
    'editor/settings.json',
    'tools/hooks/pre-commit',
    'cfg/settings.json',
  ];
  for (const path of [...evil, 'ci/x.yml', 'part/b.txt', 'tools/c.txt'])
    writeFileSync(join(root, path), 'evil\n');
  rmSync(join(root, 'a'));
  symlinkSync('part', join(root, 'a'));

  const saved = await workspace.save(anAttempt(), 'x');

  expect(gitIn(project, 'diff', '--name-only', 'HEAD', 'agent/bd-a1/1').split('\n')).toEqual([
    'ci/x.yml',
    'part/b.txt',
    'tools/c.txt',
  ]);
  expect(saved?.notes).toHaveLength(5);
  expect((await workspace.diff(id, 1))?.guarded).toEqual(['ci/x.yml']);
});

test('protected settings are on the branch, and in no other folder until a person merged them', {
  tags: ['slow'],
}, async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const first = await workspace.open(anAttempt(1, 'bd-b'));
  writeFileSync(join(first.root, '.npmrc'), 'registry=https://evil\n');
  writeFileSync(join(first.root, 'b.txt'), 'b\n');
  await workspace.save(anAttempt(1, 'bd-b'), 'x');

  const { root } = await workspace.open(anAttempt(), ['bd-b' as TaskId]);
  const found = ['.npmrc', 'b.txt'].map((name) => existsSync(join(root, name)));
  writeFileSync(join(root, 'c.txt'), 'c\n');
  const saved = await workspace.save(anAttempt(), 'x');

  expect(found).toEqual([false, true]);
  expect((await workspace.diff('bd-b' as TaskId, 1))?.guarded).toEqual(['.npmrc']);
  expect(saved).toMatchObject({ files: 1 });
  expect(treeOf(project)).toEqual(['.npmrc', 'a.txt', 'b.txt', 'c.txt']);
});

test.each(['of the repository', 'of the user'])(
  'a hook in a folder that the settings %s name is shown',
  async (whose) => {
    const project = makeRepository();
    const home = temporaryFolder();
    vi.stubEnv('HOME', home);
    onTestFinished(() => void vi.unstubAllEnvs());
    const users = ['--file', join(home, '.gitconfig')];
    const where = whose === 'of the user' ? users : ['--local'];
    gitIn(project, 'config', ...where, 'core.hooksPath', 'tools/hooks');
    const workspace = await worktreesOf(project, temporaryFolder());
    const first = await workspace.open(anAttempt(1, 'bd-b'));
    mkdirSync(join(first.root, 'tools/hooks'), { recursive: true });
    for (const name of ['tools/hooks/pre-commit', 'tools/a.txt'])
      writeFileSync(join(first.root, name), 'x\n');
    await workspace.save(anAttempt(1, 'bd-b'), 'x');

    const { root } = await workspace.open(anAttempt(), ['bd-b' as TaskId]);

    expect((await workspace.diff('bd-b' as TaskId, 1))?.guarded).toEqual([
      'tools/hooks/pre-commit',
    ]);
    expect(
      ['tools/hooks/pre-commit', 'tools/a.txt'].map((name) => existsSync(join(root, name))),
    ).toEqual([false, true]);
  },
);

test('a link that leads out of the project is not merged, nor a file that the user deleted', {
  tags: ['slow'],
}, async () => {
  const project = makeRepository();
  commitIn(project, 'b.txt', 'b\n');
  const workspace = await worktreesOf(project, temporaryFolder());
  const one = await workspace.open(anAttempt());
  symlinkSync('../outside', join(one.root, 'docs'));
  await workspace.save(anAttempt(), 'x');
  const two = await workspace.open(anAttempt(1, 'bd-b'));
  writeFileSync(join(two.root, 'b.txt'), 'changed\n');
  await workspace.save(anAttempt(1, 'bd-b'), 'x');
  rmSync(join(project, 'b.txt'));

  expect(await landAlone(workspace, id, 1, 'ff', 'x')).toMatchObject({
    status: 'conflict',
    why: expect.stringContaining('docs is a link that may lead out of the project'),
  });
  expect(await landAlone(workspace, 'bd-b' as TaskId, 1, 'ff', 'x')).toMatchObject({
    why: 'you deleted files that the work changed',
    files: ['b.txt'],
  });
  expect(existsSync(join(project, '.git', 'HEAD.lock'))).toBe(false);
});

test("text with CR LF is saved with the user's line ends", async () => {
  const project = makeRepository();
  commitIn(project, '.gitattributes', '*.txt text\n');
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'b.txt'), 'one\r\ntwo\r\n');
  writeFileSync(join(root, 'c.bin'), 'one\r\n');

  await workspace.save(anAttempt(), 'x');
  await landAlone(workspace, id, 1, 'ff', 'x');

  expect(readFileSync(join(project, 'b.txt'), 'utf8')).toBe('one\ntwo\n');
  expect(readFileSync(join(project, 'c.bin'), 'utf8')).toBe('one\r\n');
  expect(gitIn(project, 'status', '--porcelain')).toBe('');
});

test.each([
  [
    'a pipe as alternates',
    (git: string) => execFileSync('mkfifo', [join(git, 'objects', 'info', 'alternates')]),
  ],
  [
    'a pipe as settings',
    (git: string) => rmSync(join(git, 'config')) ?? execFileSync('mkfifo', [join(git, 'config')]),
  ],
  ['a commondir', (git: string) => writeFileSync(join(git, 'commondir'), '/etc')],
])('a repository with %s is refused by name', async (_, plant) => {
  const project = makeRepository();
  plant(join(project, '.git'));
  const workspace = await worktreesOf(project, temporaryFolder());

  await expect(workspace.open(anAttempt())).rejects.toThrow(
    /not a plain file or folder|leads to another repository/,
  );
  expect(workspace.describe()).toMatch(/^runs are refused: /);
});

test("a repository that an agent creates in a submodule's folder is not entered", async () => {
  const [project, other] = [makeRepository(), makeRepository()];
  gitIn(project, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', other, 'sub');
  gitIn(project, 'commit', '--quiet', '-m', 'add a submodule');
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  const trap = join(temporaryFolder(), 'sprung');
  mkdirSync(join(root, 'sub'), { recursive: true });
  gitIn(join(root, 'sub'), 'init', '--quiet');
  gitIn(join(root, 'sub'), 'config', 'core.fsmonitor', `touch ${trap}`);
  writeFileSync(join(root, 'sub', 'x'), 'x');
  writeFileSync(join(root, 'b.txt'), 'b\n');

  await workspace.diff(id, null);
  await workspace.save(anAttempt(), 'x');

  expect(existsSync(trap)).toBe(false);
  expect(treeOf(project)).toEqual(['.gitmodules', 'a.txt', 'b.txt', 'sub']);
});

test('a folder that the work of two attempts turns into a repository is not merged', {
  tags: ['slow'],
}, async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const parts = { 'bd-b1': ['HEAD'], 'bd-b2': ['objects/x', 'refs/x'] };
  for (const [task, names] of Object.entries(parts)) {
    const { root } = await workspace.open(anAttempt(1, task));
    for (const name of names) {
      mkdirSync(join(root, 'lib', name, '..'), { recursive: true });
      writeFileSync(join(root, 'lib', name), 'ref: refs/heads/main\n');
    }
    await workspace.save(anAttempt(1, task), 'x');
  }

  expect(await landAlone(workspace, 'bd-b1' as TaskId, 1, 'squash', 'x')).toMatchObject({
    status: 'merged',
  });
  expect(await landAlone(workspace, 'bd-b2' as TaskId, 1, 'squash', 'x')).toMatchObject({
    status: 'conflict',
    why: expect.stringContaining('the work turns a folder into a git repository'),
    files: ['lib'],
  });
  expect(existsSync(join(project, 'lib', 'refs'))).toBe(false);
});

test('a file that is too large is left out and named', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'small.txt'), 'x');
  writeFileSync(join(root, 'sparse'), '');
  truncateSync(join(root, 'sparse'), 1024 ** 4);

  const saved = await workspace.save(anAttempt(), 'x');

  expect(saved).toMatchObject({
    files: 1,
    notes: ['sparse was not saved: it has more than 100 MiB'],
  });
});

test('files that are too large together are left out and named', async (context) => {
  if (!isLong) return context.skip('npm run test:long writes that much');
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  for (let number = 0; number < 12; number += 1) {
    writeFileSync(join(root, `sparse-${number}`), `${number}`);
    truncateSync(join(root, `sparse-${number}`), 100 * 1024 ** 2);
  }

  const saved = await workspace.save(anAttempt(), 'x');

  expect(saved?.files).toBe(5);
  expect(saved?.notes).toHaveLength(7);
});

test('a name that git leaves out without failing is noted', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  symlinkSync('a.txt', join(root, 'GITMOD~1'));
  writeFileSync(join(root, 'b.txt'), 'b');

  const saved = await workspace.save(anAttempt(), 'x');

  expect(saved).toMatchObject({
    files: 1,
    notes: ['GITMOD~1 was not saved: git refuses this name'],
  });
});

const isTried = isLong || process.env['AGENT_TEST_SECURITY'] !== undefined;

test('ignore rules that take git for ever are abandoned, and delay nobody else', async (context) => {
  if (!isTried) return context.skip('npm run test:security and test:long wait that long');
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const [slow, other] = [
    await workspace.open(anAttempt()),
    await workspace.open(anAttempt(1, 'bd-b1')),
  ];
  const deep = 'a/'.repeat(100);
  mkdirSync(join(slow.root, deep), { recursive: true });
  writeFileSync(join(slow.root, deep, 'c'), 'c');
  for (const name of ['.gitignore', '.gitattributes'])
    writeFileSync(
      join(slow.root, name),
      `${'**/a/'.repeat(6)}**/b${name === '.gitignore' ? '' : ' foo'}\n`,
    );
  writeFileSync(join(other.root, 'b.txt'), 'b');

  const saving = workspace.save(anAttempt(), 'x');
  let isSaved = false;
  void saving.then(() => {
    isSaved = true;
  });
  await workspace.save(anAttempt(1, 'bd-b1'), 'x');
  expect(isSaved).toBe(false);
  expect(await landAlone(workspace, 'bd-b1' as TaskId, 1, 'squash', 'x')).toMatchObject({
    status: 'merged',
  });

  expect((await saving)?.notes.join()).toContain('the rules of .gitignore took git more than 5 s');
  expect(await landAlone(workspace, id, 1, 'squash', 'x')).toMatchObject({
    status: 'conflict',
    why: 'git check-attr did not end within 10 s',
  });
  expect(existsSync(join(project, '.git', 'HEAD.lock'))).toBe(false);
}, 120_000);
