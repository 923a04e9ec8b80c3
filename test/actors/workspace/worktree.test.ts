import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Workspace } from '../../../src/actors/workspace/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt, describeWorkspace } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const id = 'bd-a1' as TaskId;

describeWorkspace('worktree', () => worktreesOf(makeRepository(), temporaryFolder()));

/** An attempt that changes a file, and ends. */
const workOn = async (
  workspace: Workspace,
  file: string,
  text: string,
  taskId = 'bd-a1',
  after: TaskId[] = [],
) => {
  const attempt = anAttempt(1, taskId);
  const { root, notes } = await workspace.open(attempt, after);
  writeFileSync(join(root, file), text);
  return { root, notes, saved: await workspace.save(attempt, 'Change it') };
};

test('an attempt works on a branch of its own; the project folder and its branch stay as they are', async () => {
  const project = makeRepository();
  writeFileSync(join(project, 'mine.txt'), 'not committed');
  const head = gitIn(project, 'rev-parse', 'HEAD');
  const workspace = await worktreesOf(project, temporaryFolder());

  const { root, saved } = await workOn(workspace, 'b.txt', 'new\n');

  expect(saved).toMatchObject({
    branch: 'agent/bd-a1/1',
    base: head,
    files: 1,
    insertions: 1,
    deletions: 0,
  });
  expect(gitIn(project, 'show', 'agent/bd-a1/1:b.txt')).toBe('new');
  expect(gitIn(project, 'log', '-1', '--format=%an|%ae|%B', 'agent/bd-a1/1')).toBe(
    'agent-server (engineer)|agent-server@localhost|Change it\n\nTask: bd-a1\nAttempt: 1\nRole: engineer',
  );
  expect(gitIn(project, 'rev-parse', 'HEAD')).toBe(head);
  expect(gitIn(project, 'status', '--porcelain')).toBe('?? mine.txt');
  expect([existsSync(root), existsSync(join(project, 'b.txt'))]).toEqual([false, false]);
  expect(gitIn(project, 'worktree', 'list').split('\n')).toHaveLength(1);
});

test('changes of an attempt are counted as they are shown: a renamed file is one file', async () => {
  const project = makeRepository();
  commitIn(project, 'long.txt', 'one\ntwo\nthree\nfour\n');
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  renameSync(join(root, 'long.txt'), join(root, 'renamed.txt'));
  writeFileSync(join(root, 'renamed.txt'), 'one\ntwo\nthree\nfour\nfive\n');
  writeFileSync(join(root, 'z.txt'), 'new\n');

  const saved = await workspace.save(anAttempt(), 'Rename it');

  const changes = await workspace.diff(id, 1);
  expect(saved).toMatchObject({ files: 2, insertions: 2, deletions: 0 });
  expect(changes?.patch.match(/^diff --git .*/gm)).toEqual([
    'diff --git a/long.txt b/renamed.txt',
    'diff --git a/z.txt b/z.txt',
  ]);
});

test('the changes are read in parts: the names of all files, then the lines of some', async () => {
  const project = makeRepository();
  commitIn(project, 'long.txt', 'one\ntwo\nthree\nfour\n');
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  renameSync(join(root, 'long.txt'), join(root, 'renamed.txt'));
  for (const name of ['ä.txt', '*', 'package.json']) writeFileSync(join(root, name), 'new\n');
  await workspace.save(anAttempt(), 'Rename it');

  const names = await workspace.diff(id, 1, { names: true });
  const some = await workspace.diff(id, 1, { paths: ['renamed.txt', 'long.txt', '*'] });

  expect(names?.patch).toBe('');
  expect(names?.files).toEqual([
    { path: '*' },
    { path: 'package.json' },
    { path: 'renamed.txt', renamed_from: 'long.txt' },
    { path: 'ä.txt' },
  ]);
  expect(names?.guarded).toEqual((await workspace.diff(id, 1))?.guarded);
  expect(some?.patch.match(/^diff --git .*/gm)).toEqual([
    'diff --git a/* b/*',
    'diff --git a/long.txt b/renamed.txt',
  ]);
});

test('saving again gives the same result, and an ended attempt is not opened again', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  const { saved } = await workOn(workspace, 'b.txt', 'new\n');

  expect(await workspace.save(anAttempt(), 'Change it')).toEqual(saved);
  await expect(workspace.open(anAttempt())).rejects.toThrow(
    'attempt 1 of bd-a1 is over; its work is on agent/bd-a1/1',
  );
});

test('work whose folder somebody removed is reported as lost', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'b.txt'), 'new\n');
  rmSync(root, { recursive: true });

  await expect(workspace.save(anAttempt(), 'x')).rejects.toThrow(
    `${root} is gone: what attempt 1 changed there is lost`,
  );
  expect(await workspace.save(anAttempt(), 'x')).toBeNull();
  expect(gitIn(project, 'branch', '--list', 'agent/*')).toBe('');
});

test('an attempt that changed nothing leaves no branch', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workspace.open(anAttempt());

  expect(await workspace.save(anAttempt(), 'x')).toBeNull();
  expect(gitIn(project, 'branch', '--list', 'agent/*')).toBe('');
  expect(await workspace.diff(id, null)).toEqual({ attempt: 1, patch: '', guarded: [] });
});

test('an existing branch is never moved', async () => {
  const project = makeRepository();
  gitIn(project, 'branch', 'agent/bd-a1/1');
  const before = gitIn(project, 'rev-parse', 'agent/bd-a1/1');

  const { saved } = await workOn(await worktreesOf(project, temporaryFolder()), 'b.txt', 'new\n');

  expect(saved?.branch).toBe('agent/bd-a1/1-2');
  expect(gitIn(project, 'rev-parse', 'agent/bd-a1/1')).toBe(before);
});

test('another process opens the same folder with its unsaved changes', async () => {
  const [project, folder] = [makeRepository(), temporaryFolder()];
  const { root } = await (await worktreesOf(project, folder)).open(anAttempt());
  writeFileSync(join(root, 'b.txt'), 'half');

  const again = await (await worktreesOf(project, folder)).open(anAttempt());

  expect(again.root).toBe(root);
  expect(readFileSync(join(again.root, 'b.txt'), 'utf8')).toBe('half');
});

test('protected settings and the tracker are not committed', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  for (const folder of ['.beads', '.claude', '.husky']) {
    mkdirSync(join(root, folder));
    writeFileSync(join(root, folder, 'x'), 'planted');
  }
  writeFileSync(join(root, '.mcp.json'), '{}');
  writeFileSync(join(root, 'b.txt'), 'new\n');

  await workspace.save(anAttempt(), 'x');

  expect(gitIn(project, 'ls-tree', '-r', '--name-only', 'agent/bd-a1/1')).toBe('a.txt\nb.txt');
});

test('the patch of an attempt is available while it runs and after its end', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'a.txt'), 'one\n2\nthree\n');
  writeFileSync(join(root, 'b.txt'), 'new\n');

  const live = await workspace.diff(id, null);
  await workspace.save(anAttempt(), 'x');

  expect(live?.patch).toMatch(/-two\n\+2\n/);
  expect(live?.patch).toContain('+++ b/b.txt');
  expect(await workspace.diff(id, 1)).toEqual(live);
  expect(await workspace.diff('bd-none' as TaskId, null)).toBeNull();
});

test('a task begins with the work of its dependencies, also when that is not merged, with a note', {
  tags: ['slow'],
}, async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  await workOn(workspace, 'b.txt', 'of b\n', 'bd-b');
  await workOn(workspace, 'c.txt', 'of c\n', 'bd-c');
  const after = ['bd-b', 'bd-c'] as TaskId[];

  const { root, notes } = await workspace.open(anAttempt(1, 'bd-d'), after);
  const found = ['a.txt', 'b.txt', 'c.txt'].map((file) => existsSync(join(root, file)));
  writeFileSync(join(root, 'd.txt'), 'of d\n');
  const saved = await workspace.save(anAttempt(1, 'bd-d'), 'x');

  expect(found).toEqual([true, true, true]);
  expect(notes).toEqual([
    "Your folder has the work of bd-b (branch agent/bd-b/1), which is not in the project's branch yet.",
    "Your folder has the work of bd-c (branch agent/bd-c/1), which is not in the project's branch yet.",
  ]);
  expect(saved).toMatchObject({ files: 1, insertions: 1 });
});

test('work goes on through a dependency that changed nothing', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  await workOn(workspace, 'b.txt', 'of b\n', 'bd-b');
  for (const [id, after] of [
    ['bd-c', 'bd-b'],
    ['bd-d', 'bd-c'],
  ] as const) {
    await workspace.open(anAttempt(1, id), [after as TaskId]);
    await workspace.save(anAttempt(1, id), 'Nothing to change');
  }

  const { root, notes } = await workspace.open(anAttempt(1, 'bd-e'), ['bd-d' as TaskId]);

  expect(existsSync(join(root, 'b.txt'))).toBe(true);
  expect(notes).toEqual([
    "Your folder has the work of bd-b (branch agent/bd-b/1), which is not in the project's branch yet.",
  ]);
});

test('conflicting work of a dependency is named and left out', async () => {
  const workspace = await worktreesOf(makeRepository(), temporaryFolder());
  await workOn(workspace, 'a.txt', 'of b\n', 'bd-b');
  await workOn(workspace, 'a.txt', 'of c\n', 'bd-c');

  const after = ['bd-b', 'bd-c'] as TaskId[];
  const { root, notes, conflicts } = await workspace.open(anAttempt(1, 'bd-d'), after);

  expect((await workspace.open(anAttempt(1, 'bd-d'), after)).conflicts).toEqual(conflicts);
  expect(readFileSync(join(root, 'a.txt'), 'utf8')).toBe('of b\n');
  expect(notes[1]).toBe(
    'The work of bd-c is on the branch agent/bd-c/1 and could not be merged into your folder: a.txt.',
  );
  expect(conflicts).toEqual([{ taskId: 'bd-c', branch: 'agent/bd-c/1', files: ['a.txt'] }]);
});

test('files that git does not track are copied where the user configures it', async () => {
  const project = makeRepository();
  writeFileSync(join(project, '.gitignore'), 'node_modules\n');
  mkdirSync(join(project, 'node_modules', 'x'), { recursive: true });
  writeFileSync(join(project, 'node_modules', 'x', 'index.js'), '1');

  const workspace = await worktreesOf(project, temporaryFolder(), ['node_modules', 'not-there']);
  const { root } = await workspace.open(anAttempt());

  expect(readFileSync(join(root, 'node_modules', 'x', 'index.js'), 'utf8')).toBe('1');
});

test.each(['ff', 'squash'] as const)(
  '%s: merged work is in the project folder, once',
  async (mode) => {
    const project = makeRepository();
    const workspace = await worktreesOf(project, temporaryFolder());
    const { saved } = await workOn(workspace, 'b.txt', 'new\n');

    const merged = await landAlone(workspace, id, 1, mode, 'Change it');

    const head = gitIn(project, 'rev-parse', 'HEAD');
    expect(merged).toEqual({ status: 'merged', commit: head, into: 'main' });
    expect(head === saved?.commit).toBe(mode === 'ff');
    expect(readFileSync(join(project, 'b.txt'), 'utf8')).toBe('new\n');
    expect(gitIn(project, 'status', '--porcelain')).toBe('');
    commitIn(project, 'c.txt', 'later\n');
    const nothing = { status: 'nothing', commit: head };
    expect(await landAlone(workspace, id, 1, mode, 'Change it')).toEqual(nothing);
    expect(await landAlone(workspace, id, 1, 'ff', 'Change it')).toEqual(nothing);
  },
);

test('a branch that has moved on accepts a squash, and no fast-forward', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, 'b.txt', 'new\n');
  commitIn(project, 'c.txt', 'meanwhile\n');

  expect(await landAlone(workspace, id, 1, 'ff', 'x')).toMatchObject({
    status: 'conflict',
    why: 'main has moved on since the attempt began; it cannot be fast-forwarded',
  });
  expect((await landAlone(workspace, id, 1, 'squash', 'Change it')).status).toBe('merged');
  expect(gitIn(project, 'log', '--format=%s')).toBe('Change it\nchange c.txt\nchange a.txt');
});

test('a repository that another git has locked is refused with the name of the lock file', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, 'b.txt', 'new\n');
  writeFileSync(join(project, '.git', 'index.lock'), '');

  const merged = await landAlone(workspace, id, 1, 'ff', 'Change it');

  expect(merged).toMatchObject({ status: 'conflict', why: expect.stringContaining('index.lock') });
});

test('a look for what is in the way needs no lock of the user', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, 'b.txt', 'new\n');
  writeFileSync(join(project, 'b.txt'), 'mine');
  writeFileSync(join(project, '.git', 'index.lock'), '');

  expect(await landAlone(workspace, id, 1, 'squash', 'Change it')).toMatchObject({
    status: 'conflict',
    files: ['b.txt'],
  });
});

/** A signal that aborts as soon as the work waits for its first command. */
const abortedSoon = (): AbortSignal => {
  const abort = new AbortController();
  setImmediate(() => abort.abort(new Error('too late')));
  return abort.signal;
};

test('an aborted merge never moves the branch afterwards', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, 'b.txt', 'new\n');
  const head = gitIn(project, 'rev-parse', 'HEAD');

  await expect(landAlone(workspace, id, 1, 'ff', 'x', abortedSoon())).rejects.toThrow('too late');

  expect(gitIn(project, 'rev-parse', 'HEAD')).toBe(head);
  expect(await landAlone(workspace, id, 1, 'ff', 'x')).toMatchObject({ status: 'merged' });
});

test('an aborted open leaves no worktree, no branch and no record', async () => {
  const [project, folder] = [makeRepository(), temporaryFolder()];
  const workspace = await worktreesOf(project, folder);

  await expect(workspace.open(anAttempt(), [], abortedSoon())).rejects.toThrow('too late');

  expect(gitIn(project, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(gitIn(project, 'branch', '--list', 'agent/*')).toBe('');
  expect(await workspace.diff(id, null)).toBeNull();
});

test('a conflict changes nothing and names the files', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, 'a.txt', 'theirs\n');
  commitIn(project, 'a.txt', 'ours\n');
  const head = gitIn(project, 'rev-parse', 'HEAD');

  expect(await landAlone(workspace, id, 1, 'squash', 'x')).toEqual({
    status: 'conflict',
    branch: 'agent/bd-a1/1',
    why: 'both main and agent/bd-a1/1 changed the same lines',
    files: ['a.txt'],
    same_lines: true,
  });
  expect([gitIn(project, 'rev-parse', 'HEAD'), gitIn(project, 'status', '--porcelain')]).toEqual([
    head,
    '',
  ]);
});

test('uncommitted changes of the user are never overwritten', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  await workOn(workspace, 'a.txt', 'theirs\n');
  writeFileSync(join(project, 'a.txt'), 'precious\n');

  expect(await landAlone(workspace, id, 1, 'ff', 'x')).toMatchObject({
    status: 'conflict',
    files: ['a.txt'],
  });
  expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('precious\n');
});

test('no hook, filter, driver or monitor that a repository names is run', {
  tags: ['slow'],
}, async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const trap = join(temporaryFolder(), 'sprung');
  const command = `touch ${trap}`;
  for (const hook of [
    'post-checkout',
    'pre-commit',
    'post-commit',
    'post-merge',
    'reference-transaction',
  ])
    writeFileSync(join(project, '.git', 'hooks', hook), `#!/bin/sh\n${command}\n`, { mode: 0o755 });
  gitIn(project, 'config', 'core.fsmonitor', command);
  gitIn(project, 'config', 'core.pager', command);
  gitIn(project, 'config', 'diff.external', command);
  gitIn(project, 'config', 'commit.gpgSign', 'true');
  gitIn(project, 'config', 'gpg.program', '/bin/false');

  await workOn(workspace, 'b.txt', 'new\n');
  await workspace.diff(id, 1);
  await landAlone(workspace, id, 1, 'ff', 'x');

  expect(existsSync(trap)).toBe(false);
  expect(existsSync(join(project, 'b.txt'))).toBe(true);
  gitIn(project, 'config', 'filter.x.clean', command);
  gitIn(project, 'config', 'filter.x.smudge', command);
  writeFileSync(join(project, '.git', 'info', 'attributes'), '* filter=x\n');
  expect((await workOn(workspace, 'c.txt', 'new\n', 'bd-c')).saved).toMatchObject({ files: 1 });
  expect(existsSync(trap)).toBe(false);
});

test('a rewritten .git file of the worktree has no effect', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  const evil = makeRepository();
  const trap = join(temporaryFolder(), 'sprung');
  gitIn(evil, 'config', 'core.fsmonitor', `touch ${trap}`);
  writeFileSync(join(root, '.git'), `gitdir: ${join(evil, '.git')}\n`);
  writeFileSync(join(root, 'b.txt'), 'new\n');

  const saved = await workspace.save(anAttempt(), 'x');

  expect(saved).toMatchObject({ branch: 'agent/bd-a1/1', files: 1 });
  expect(gitIn(project, 'show', 'agent/bd-a1/1:b.txt')).toBe('new');
  expect([existsSync(trap), existsSync(root)]).toEqual([false, false]);
});

test("a commit that an unsandboxed command made elsewhere is saved on the attempt's branch", async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  gitIn(root, 'checkout', '--quiet', '-b', 'elsewhere');
  commitIn(root, 'b.txt', 'new\n');

  const saved = await workspace.save(anAttempt(), 'x');

  expect(saved).toMatchObject({ branch: 'agent/bd-a1/1', files: 1 });
  expect(gitIn(project, 'show', 'agent/bd-a1/1:b.txt')).toBe('new');
});

test('work that cannot be saved stays in its folder', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'b.txt'), 'new\n');
  const planted = join(project, '.git', 'objects', 'zz');
  symlinkSync('/etc', planted);

  await expect(workspace.save(anAttempt(), 'x')).rejects.toThrow(
    `${planted} is not a plain file or folder`,
  );
  expect(readFileSync(join(root, 'b.txt'), 'utf8')).toBe('new\n');

  rmSync(planted);
  expect(await workspace.save(anAttempt(), 'x')).toMatchObject({ files: 1 });
});

test('links and odd names are saved as they are', async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const { root } = await workspace.open(anAttempt());
  symlinkSync('/etc/passwd', join(root, 'link'));
  for (const name of ['-n', 'a b', 'ü\n', ':(exclude)x']) writeFileSync(join(root, name), 'x\n');

  expect(await workspace.save(anAttempt(), 'x')).toMatchObject({ files: 5 });
  expect(gitIn(project, 'cat-file', '-p', 'agent/bd-a1/1:link')).toBe('/etc/passwd');
});

test('a project below the top of its repository has its folder below the top of the worktree', async () => {
  const repository = makeRepository();
  const project = join(repository, 'packages', 'one');
  mkdirSync(project, { recursive: true });
  commitIn(project, 'b.txt', 'b\n');
  const workspace = await worktreesOf(project, temporaryFolder());

  const { root } = await workspace.open(anAttempt());
  writeFileSync(join(root, 'b.txt'), 'changed\n');
  await workspace.save(anAttempt(), 'x');

  expect(root.endsWith('packages/one')).toBe(true);
  expect(gitIn(repository, 'show', 'agent/bd-a1/1:packages/one/b.txt')).toBe('changed');
});
