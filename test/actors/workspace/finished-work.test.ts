import { existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFinishedWork } from '../../../src/actors/workspace/worktrees/finished-work.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const open = async (project = makeRepository()) => {
  const state = temporaryFolder();
  const workspace = await worktreesOf(project, state);
  const work = createFinishedWork({
    ...{ program: '/usr/bin/git', projectRoot: project, folder: state, copies: [], filters: [] },
    ...{ sandboxed: false, description: '', keep: [], common: null },
  });
  /** An attempt that adds a file, and ends. */
  const workOn = async (taskId: string, file: string, after: readonly TaskId[] = []) => {
    const attempt = anAttempt(1, taskId);
    const { root } = await workspace.open(attempt, after);
    writeFileSync(join(root, file), `${taskId}\n`);
    await workspace.save(attempt, 'Change it');
    return root;
  };
  const merge = (taskId: string, mode: 'ff' | 'squash' = 'ff') =>
    landAlone(workspace, taskId as TaskId, 1, mode, 'Merge it');
  const stays = async () =>
    Object.fromEntries((await work.all()).map(({ taskId, stays }) => [taskId, stays]));
  const unmerged = async () =>
    (await work.all()).flatMap(({ taskId, isUnmerged }) => (isUnmerged ? [taskId] : [])).sort();
  const removeAll = async () => {
    const all = await work.all();
    const told = [];
    for (const each of all.filter((one) => one.stays === null)) told.push(await work.remove(each));
    return told;
  };
  const branches = () =>
    gitIn(project, 'branch', '--list', '--format=%(refname:short)', 'agent/*').split('\n');
  return { project, state, workspace, work, workOn, merge, stays, unmerged, removeAll, branches };
};

test('merged work can go, also when it was squashed or merged by hand; other work stays', {
  tags: ['slow'],
}, async () => {
  const { project, state, workOn, merge, stays, unmerged, removeAll, branches } = await open();
  for (const id of ['bd-ff', 'bd-squash', 'bd-hand', 'bd-open']) await workOn(id, `${id}.txt`);
  await merge('bd-ff');
  await merge('bd-squash', 'squash');
  gitIn(project, 'merge', '--quiet', '-m', 'by hand', 'agent/bd-hand/1');

  expect(await stays()).toEqual({
    'bd-ff': null,
    'bd-squash': null,
    'bd-hand': null,
    'bd-open': 'not merged',
  });
  expect(await unmerged()).toEqual(['bd-open']);
  expect(await removeAll()).toEqual([null, null, null]);

  expect(branches()).toEqual(['agent/bd-open/1']);
  expect(await stays()).toEqual({ 'bd-open': 'not merged' });
  expect(existsSync(join(state, 'bd-open@1.json'))).toBe(true);
  expect((await workspaceDiff(project, state)).patch).toContain('+bd-open');
});

const workspaceDiff = async (project: string, state: string) => {
  const changes = await (await worktreesOf(project, state)).diff('bd-open' as TaskId, null);
  return changes ?? { patch: '' };
};

test('work is merged when any branch of the person has it, also while another one is checked out', {
  tags: ['slow'],
}, async () => {
  const { project, workOn, merge, stays } = await open();
  await workOn('bd-a', 'a2.txt');
  const before = gitIn(project, 'rev-parse', 'HEAD');
  await merge('bd-a');

  gitIn(project, 'checkout', '--quiet', '--detach', before);
  expect(await stays()).toEqual({ 'bd-a': null });

  gitIn(project, 'branch', '--force', 'main', before);
  expect(await stays()).toEqual({ 'bd-a': 'not merged' });
});

test('an attempt that runs or was not saved stays', async () => {
  const { workspace, stays, unmerged } = await open();
  await workspace.open(anAttempt(1, 'bd-a'));

  expect([await stays(), await unmerged()]).toEqual([{ 'bd-a': 'not saved yet' }, ['bd-a']]);
});

test('a branch that is checked out stays: in a worktree of the person, in the project, in a rebase', {
  tags: ['slow'],
}, async () => {
  const { project, work, workOn, merge, stays } = await open();
  await workOn('bd-a', 'b.txt');
  await merge('bd-a');
  const [before] = await work.all();
  const elsewhere = join(temporaryFolder(), 'elsewhere');
  gitIn(project, 'worktree', 'add', '--quiet', elsewhere, 'agent/bd-a/1');

  expect(await stays()).toEqual({ 'bd-a': 'the branch agent/bd-a/1 is checked out' });
  expect(before && (await work.remove(before))).toBe('the branch agent/bd-a/1 is checked out');
  gitIn(project, 'worktree', 'remove', elsewhere);
  expect(await stays()).toEqual({ 'bd-a': null });
  gitIn(project, 'switch', '--quiet', 'agent/bd-a/1');
  expect(await stays()).toEqual({ 'bd-a': 'the branch agent/bd-a/1 is checked out' });
  gitIn(project, 'switch', '--quiet', 'main');
  mkdirSync(join(project, '.git', 'worktrees', 'x', 'rebase-merge'), { recursive: true });
  writeFileSync(
    join(project, '.git', 'worktrees', 'x', 'rebase-merge', 'head-name'),
    'refs/heads/agent/bd-a/1\n',
  );
  expect(await stays()).toEqual({ 'bd-a': 'the branch agent/bd-a/1 is checked out' });
});

test('branches of others below agent/ stay, and so does one of ours that somebody moved', {
  tags: ['slow'],
}, async () => {
  const { project, work, workOn, merge, stays, removeAll, branches } = await open();
  await workOn('bd-a', 'b.txt');
  await workOn('bd-b', 'c.txt');
  for (const name of ['agent/bd-a/2', 'agent/bd-c/1', 'agent/mine'])
    gitIn(project, 'branch', name, 'agent/bd-a/1');
  await merge('bd-a');
  await merge('bd-b', 'squash');
  const old = await work.all();
  gitIn(project, 'branch', '--force', 'agent/bd-b/1', 'HEAD~1');

  expect(await stays()).toEqual({
    'bd-a': null,
    'bd-b': 'somebody else moved the branch agent/bd-b/1',
  });
  const [, ofB] = old;
  expect(ofB && (await work.remove(ofB))).toContain('the branch agent/bd-b/1 could not be removed');
  expect(await removeAll()).toEqual([null]);
  expect(branches()).toEqual(['agent/bd-a/2', 'agent/bd-b/1', 'agent/bd-c/1', 'agent/mine']);
});

test('a branch that only others below agent/ have is theirs: the work counts as merged nowhere else', async () => {
  const { project, workOn, stays } = await open();
  await workOn('bd-a', 'b.txt');
  gitIn(project, 'branch', '--force', 'agent/mine', 'agent/bd-a/1');

  expect(await stays()).toEqual({ 'bd-a': null });
});

test('a folder that a person put back and changed stays; one that is as it was saved goes', {
  tags: ['slow'],
}, async () => {
  const { state, workspace, work, workOn, merge, stays, removeAll } = await open();
  const root = await workOn('bd-a', 'b.txt');
  await merge('bd-a');
  // As if the removal at its end had failed.
  const { root: other } = await workspace.open(anAttempt(1, 'bd-b'));
  renameSync(other, root);
  writeFileSync(join(root, 'b.txt'), 'bd-a\n');
  expect(await stays()).toMatchObject({ 'bd-a': null });

  writeFileSync(join(root, 'note.txt'), 'mine\n');
  expect(await stays()).toMatchObject({ 'bd-a': `${root} has changes that are not saved` });
  renameSync(join(root, 'note.txt'), join(temporaryFolder(), 'note.txt'));
  expect(await removeAll()).toEqual([null]);
  expect([existsSync(root), existsSync(join(state, 'bd-a@1.json'))]).toEqual([false, false]);
  expect((await work.all()).map(({ taskId }) => taskId)).toEqual(['bd-b']);
});

test('does not remove a symlink that replaced a worktree, nor its target', async () => {
  const { work, workOn, merge, stays } = await open();
  const root = await workOn('bd-a', 'b.txt');
  await merge('bd-a');
  const [before] = await work.all();
  const outside = temporaryFolder();
  writeFileSync(join(outside, 'mine'), 'x');
  symlinkSync(outside, root);

  expect(await stays()).toEqual({ 'bd-a': `${root} was not made by this server` });
  expect(before && (await work.remove({ ...before, folder: root }))).toBe(
    `${root} was not made by this server`,
  );
  expect([existsSync(join(outside, 'mine')), existsSync(root)]).toEqual([true, true]);
});

test('work that other unmerged work began with stays, although it was squashed', {
  tags: ['slow'],
}, async () => {
  const { workOn, merge, stays, workspace } = await open();
  await workOn('bd-a', 'b.txt');
  await workOn('bd-b', 'c.txt', ['bd-a' as TaskId]);
  await merge('bd-a', 'squash');

  expect(await stays()).toEqual({
    'bd-a': 'bd-b builds on it and is not merged',
    'bd-b': 'not merged',
  });
  await landAlone(workspace, 'bd-b' as TaskId, 1, 'squash', 'Merge it');
  expect(await stays()).toEqual({ 'bd-a': null, 'bd-b': null });
});

test('a repository that is gone or refused keeps all', async () => {
  const { project, workOn, merge, stays, unmerged } = await open();
  await workOn('bd-a', 'b.txt');
  await merge('bd-a');
  renameSync(join(project, '.git'), join(project, 'git'));

  expect(await unmerged()).toEqual(['bd-a']);
  expect(await stays()).toEqual({ 'bd-a': 'the repository of this project is gone' });
});

test('a project without git: merged work goes from our own repository', {
  tags: ['slow'],
}, async () => {
  const project = temporaryFolder();
  writeFileSync(join(project, 'a.txt'), 'one\n');
  const { workOn, merge, stays, removeAll } = await open(project);
  await workOn('bd-a', 'b.txt');
  expect(await stays()).toEqual({ 'bd-a': 'not merged' });
  await merge('bd-a');

  expect(await removeAll()).toEqual([null]);
  expect(await stays()).toEqual({});
});

test('two at once: what the other removed is gone, and nobody complains', {
  tags: ['slow'],
}, async () => {
  const { project, work, workOn, merge } = await open();
  commitIn(project, 'x.txt', 'x');
  await workOn('bd-a', 'b.txt');
  await merge('bd-a');
  const [first] = await work.all();

  expect(await Promise.all([first && work.remove(first), first && work.remove(first)])).toEqual([
    null,
    null,
  ]);
});
