import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFinishedWork } from '../../../src/actors/workspace/worktrees/finished-work.ts';
import type { AttemptInput, TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const id = 'bd-a1' as TaskId;

/** A project whose task has complete work. */
const open = async () => {
  const project = makeRepository();
  const workspace = await worktreesOf(project, temporaryFolder());
  const work = async (attempt: AttemptInput, file: string, after: TaskId[] = []) => {
    const { root, notes } = await workspace.open(attempt, after);
    const had = existsSync(join(root, 'first.txt'));
    writeFileSync(join(root, file), 'new\n');
    await workspace.save(attempt, 'Change it');
    return { had, notes };
  };
  await work(anAttempt(1), 'first.txt');
  return { project, workspace, work };
};

test('discarded work stays on its branch, and says when it was discarded', async () => {
  const { project, workspace } = await open();

  expect(await workspace.discard(id, 1, 'not needed')).toBe('discarded');

  expect(await workspace.workOf(id, 1)).toMatchObject({
    branch: 'agent/bd-a1/1',
    discarded_at: expect.stringMatching(/^\d{4}-/),
  });
  expect(gitIn(project, 'show', 'agent/bd-a1/1:first.txt')).toBe('new');
});

test('no task and no later attempt builds on discarded work', async () => {
  const { workspace, work } = await open();
  await workspace.discard(id, 1, null);

  const dependent = await work(anAttempt(1, 'bd-b2'), 'b.txt', [id]);
  const later = await work(
    { ...anAttempt(2), review: { continues: 1, comments: [] } },
    'second.txt',
  );

  expect([dependent.had, later.had, later.notes]).toEqual([false, false, []]);
  expect(dependent.notes).toEqual(['The work of bd-a1 was discarded and is not in your folder.']);
});

test('work that has discarded work in it is not merged, and says so', async () => {
  const { project, workspace, work } = await open();
  await work(anAttempt(1, 'bd-b2'), 'b.txt', [id]);
  await workspace.discard(id, 1, null);

  expect(await landAlone(workspace, 'bd-b2' as TaskId, 1, 'ff', 'Merge it')).toMatchObject({
    status: 'conflict',
    why: "bd-a1's work is in it and was discarded: run it again, without that",
    run_again: true,
  });
  expect(gitIn(project, 'ls-tree', '--name-only', 'main')).toBe('a.txt');
});

test('what is merged, or not there, is not discarded', async () => {
  const { workspace } = await open();
  await landAlone(workspace, id, 1, 'ff', 'Merge it');

  expect(await workspace.discard(id, 1, null)).toBe('merged');
  expect(await workspace.discard('bd-none' as TaskId, 1, null)).toBeNull();
});

test('discarded, superseded and failed work is offered for removal, with the reason', async () => {
  const project = makeRepository();
  const folder = temporaryFolder();
  const workspace = await worktreesOf(project, folder);
  const finished = createFinishedWork({
    ...{ program: '/usr/bin/git', projectRoot: project, folder, copies: [], filters: [] },
    ...{ sandboxed: false, description: '', keep: [], common: null },
  });
  const work = async (attempt: number, taskId: string, complete: boolean) => {
    const { root } = await workspace.open(anAttempt(attempt, taskId));
    writeFileSync(join(root, `${taskId}${attempt}.txt`), 'new\n');
    await workspace.save(anAttempt(attempt, taskId), 'Change it', complete);
  };
  await work(1, 'bd-two', true);
  await work(2, 'bd-two', true);
  await work(1, 'bd-bad', false);
  await work(1, 'bd-no', true);
  await workspace.discard('bd-no' as TaskId, 1, null);

  const all = await finished.all();

  expect(all.map(({ stays }) => stays)).toEqual(Array(4).fill('not merged'));
  const found = all.map(({ taskId, attempt, superseded }) => [`${taskId}#${attempt}`, superseded]);
  expect(Object.fromEntries(found)).toEqual({
    'bd-two#1': 'attempt 2 is complete',
    'bd-two#2': null,
    'bd-bad#1': 'the attempt did not complete it',
    'bd-no#1': 'it was discarded',
  });
});
