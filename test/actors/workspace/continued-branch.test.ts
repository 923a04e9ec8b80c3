import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFinishedWork } from '../../../src/actors/workspace/worktrees/finished-work.ts';
import type { AttemptInput, TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const id = 'bd-a1' as TaskId;
const branch = 'agent/bd-a1/1';
const second: AttemptInput = { ...anAttempt(2), review: { continues: 1, comments: [] } };

/** A project whose task has one attempt, which added a file. */
const open = async () => {
  const project = makeRepository();
  const state = temporaryFolder();
  const workspace = await worktreesOf(project, state);
  const work = createFinishedWork({
    ...{ program: '/usr/bin/git', projectRoot: project, folder: state, copies: [], filters: [] },
    ...{ sandboxed: false, description: '', keep: [], common: null },
  });
  const run = async (attempt = second, file = 'second.txt') => {
    const { root, notes } = await workspace.open(attempt);
    const hadFirst = existsSync(join(root, 'first.txt'));
    if (file !== '') writeFileSync(join(root, file), 'new\n');
    return { root, notes, hadFirst, saved: await workspace.save(attempt, 'Change it') };
  };
  await run(anAttempt(1), 'first.txt');
  const filesOn = (name: string) => gitIn(project, 'ls-tree', '--name-only', name).split('\n');
  return { project, workspace, work, run, filesOn };
};

test('an attempt that a review sent back goes on with the branch, and its diff shows all of the work', {
  tags: ['slow'],
}, async () => {
  const { project, workspace, run, filesOn } = await open();
  const first = gitIn(project, 'rev-parse', branch);
  const base = gitIn(project, 'rev-parse', 'main');

  const { saved, hadFirst, notes } = await run();

  expect(hadFirst).toBe(true);
  expect(notes).toEqual([`Your folder has the work of attempt 1 (branch ${branch}).`]);
  expect(saved).toMatchObject({ branch, base, files: 2, insertions: 2 });
  expect(gitIn(project, 'rev-parse', `${branch}^`)).toBe(first);
  expect(gitIn(project, 'branch', '--list', '--format=%(refname:short)', 'agent/*')).toBe(branch);
  expect((await workspace.diff(id, null))?.patch).toMatch(/first\.txt[\s\S]*second\.txt/);
  await landAlone(workspace, id, 2, 'ff', 'Merge it');
  expect(filesOn('main')).toEqual(['a.txt', 'first.txt', 'second.txt']);
});

test('while it runs its diff shows the work of both attempts', async () => {
  const { workspace } = await open();
  const { root } = await workspace.open(second);
  const early = await workspace.diff(id, null);
  writeFileSync(join(root, 'second.txt'), 'new\n');

  expect(early?.patch).toContain('first.txt');
  expect((await workspace.diff(id, null))?.patch).toMatch(/first\.txt[\s\S]*second\.txt/);
});

test('one that changes nothing leaves the branch and its work as they were', {
  tags: ['slow'],
}, async () => {
  const { project, workspace, run } = await open();
  const before = gitIn(project, 'rev-parse', branch);

  const { saved } = await run(second, '');

  expect(saved).toMatchObject({ branch, commit: before, files: 1 });
  expect(gitIn(project, 'rev-parse', branch)).toBe(before);
  expect((await landAlone(workspace, id, 2, 'ff', 'Merge it')).status).toBe('merged');
});

test('commits that a person added to the branch are part of it', async () => {
  const { project, run, filesOn } = await open();
  gitIn(project, 'checkout', '--quiet', branch);
  commitIn(project, 'mine.txt', 'mine\n');
  gitIn(project, 'checkout', '--quiet', 'main');

  const { saved } = await run();

  expect(saved).toMatchObject({ branch, files: 3 });
  expect(filesOn(branch)).toEqual(['a.txt', 'first.txt', 'mine.txt', 'second.txt']);
});

const addMine = (project: string, file = 'mine.txt') => {
  gitIn(project, 'checkout', '--quiet', branch);
  commitIn(project, file, 'mine\n');
  gitIn(project, 'checkout', '--quiet', 'main');
};

test.each(['ff', 'squash'] as const)(
  'a commit that a person added to the branch is merged with it (%s), and so is a later one',
  { tags: ['slow'] },
  async (mode) => {
    const { project, workspace, work, filesOn } = await open();
    addMine(project);

    expect((await workspace.diff(id, 1))?.patch).toMatch(/first\.txt[\s\S]*mine\.txt/);
    expect((await landAlone(workspace, id, 1, mode, 'Merge it')).status).toBe('merged');
    expect(filesOn('main')).toEqual(['a.txt', 'first.txt', 'mine.txt']);
    expect((await landAlone(workspace, id, 1, mode, 'Merge it')).status).toBe('nothing');
    expect((await work.all()).map(({ stays }) => stays)).toEqual([null]);

    addMine(project, 'later.txt');
    expect((await landAlone(workspace, id, 1, mode, 'Merge it')).status).toBe('merged');
    expect(filesOn('main')).toEqual(['a.txt', 'first.txt', 'later.txt', 'mine.txt']);
  },
);

test('a task that builds on the work begins with the commit of the person, too', async () => {
  const { project, workspace } = await open();
  addMine(project);

  const { root } = await workspace.open(anAttempt(1, 'bd-b2'), [id]);

  expect(existsSync(join(root, 'mine.txt'))).toBe(true);
});

test('merging an earlier attempt takes nothing of the one that goes on with its branch', async () => {
  const { workspace, run, filesOn } = await open();
  await run();

  expect((await landAlone(workspace, id, 1, 'ff', 'Merge it')).status).toBe('merged');
  expect(filesOn('main')).toEqual(['a.txt', 'first.txt']);
});

test('a branch that a person rewrote is not merged: the message says how to', async () => {
  const { project, workspace, filesOn } = await open();
  gitIn(project, 'checkout', '--quiet', branch);
  gitIn(project, 'commit', '--quiet', '--amend', '-m', 'in my words');
  gitIn(project, 'checkout', '--quiet', 'main');

  expect(await landAlone(workspace, id, 1, 'ff', 'Merge it')).toEqual({
    status: 'conflict',
    branch,
    why: `somebody rewrote ${branch}: it does not have the commit of the attempt any more`,
    files: [],
    rewritten: true,
  });
  expect(filesOn('main')).toEqual(['a.txt']);
});

test('a branch that a person has checked out is not moved: the work goes on with one of its own', async () => {
  const { project, run, filesOn } = await open();
  gitIn(project, 'checkout', '--quiet', branch);

  const { saved, hadFirst } = await run();

  expect(hadFirst).toBe(true);
  expect(saved).toMatchObject({ branch: 'agent/bd-a1/2', files: 2 });
  expect(filesOn(branch)).toEqual(['a.txt', 'first.txt']);
  expect(gitIn(project, 'status', '--porcelain')).toBe('');
});

test('a branch that a person moves meanwhile stays theirs', async () => {
  const { project, workspace } = await open();
  const { root } = await workspace.open(second);
  writeFileSync(join(root, 'second.txt'), 'new\n');
  gitIn(project, 'branch', '--force', branch, 'main');

  const saved = await workspace.save(second, 'Change it');

  expect(saved).toMatchObject({ branch: 'agent/bd-a1/2', files: 2 });
  expect(gitIn(project, 'rev-parse', branch)).toBe(gitIn(project, 'rev-parse', 'main'));
});

test.each([
  [
    'merged',
    async ({ workspace }) => void (await landAlone(workspace, id, 1, 'squash', 'Merge it')),
  ],
  ['gone', async ({ project }) => void gitIn(project, 'branch', '-D', branch)],
] satisfies [string, (scene: Awaited<ReturnType<typeof open>>) => Promise<void>][])(
  'with a branch that is %s it begins with the branch of the project',
  { tags: ['slow'] },
  async (_, change) => {
    const scene = await open();
    await change(scene);

    const { saved } = await scene.run();

    expect(saved).toMatchObject({ base: gitIn(scene.project, 'rev-parse', 'main'), files: 1 });
    expect(saved?.branch).toBe('agent/bd-a1/2');
  },
);

test.each(['ff', 'squash'] as const)(
  'after a merge (%s) nothing of both attempts stays; before it, all',
  { tags: ['slow'] },
  async (mode) => {
    const { project, workspace, work, run } = await open();
    await run();
    expect((await work.all()).map(({ stays }) => stays)).toEqual(['not merged', 'not merged']);

    await landAlone(workspace, id, 2, mode, 'Merge it');

    const all = await work.all();
    expect(all.map(({ stays }) => stays)).toEqual([null, null]);
    for (const each of all) expect(await work.remove(each)).toBeNull();
    expect(await work.all()).toEqual([]);
    expect(gitIn(project, 'branch', '--list', 'agent/*')).toBe('');
  },
);

test('while an attempt goes on with a branch, the earlier one stays', async () => {
  const { workspace, work } = await open();
  await workspace.open(second);

  expect((await work.all()).map(({ attempt, stays }) => [attempt, stays])).toEqual([
    [1, 'attempt 2 goes on with it'],
    [2, 'not saved yet'],
  ]);
});

test('an attempt that is opened again after a crash has the folder that it had', async () => {
  const { workspace } = await open();
  const { root } = await workspace.open(second);
  writeFileSync(join(root, 'second.txt'), 'new\n');

  const again = await workspace.open(second);

  expect(again.root).toBe(root);
  expect(readFileSync(join(root, 'second.txt'), 'utf8')).toBe('new\n');
});
