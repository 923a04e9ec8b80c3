import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone, memberOf } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const task = 'bd-a1' as TaskId;

/** Work that landed. Then the server ended before it noted that. */
const cutAfterMove = async (undo: boolean) => {
  const [root, state] = [makeRepository(), temporaryFolder()];
  const workspace = await worktreesOf(root, state);
  const attempt = anAttempt(1, task);
  const { root: folder } = await workspace.open(attempt);
  writeFileSync(join(folder, 'new.txt'), 'new\n');
  await workspace.save(attempt, 'Add it');
  const file = join(state, `${task}@1.json`);
  const notes: Record<string, unknown>[] = [];
  const land = async (isUndo: boolean): Promise<void> => {
    const members = [memberOf(task, 1, isUndo ? { undo: true } : {})];
    const before = JSON.parse(readFileSync(file, 'utf8'));
    const train = await workspace.build(members);
    await workspace.land({ ...train, members, commands: ['true'], evidence });
    const { commit: tip } = before;
    const commit = gitIn(root, 'rev-parse', 'HEAD');
    notes.push({
      ...before,
      landing: { commit, tip, undoes: isUndo, commands: ['true'], ...evidence },
    });
  };
  await land(false);
  if (undo) await land(true);
  writeFileSync(file, JSON.stringify(notes.at(-1)));
  return { root, workspace, commit: gitIn(root, 'rev-parse', 'HEAD') };
};
const evidence = { tested_at: '2026-01-01T00:00:00Z', tested_seconds: 1 };

test('what landed in a crash is answered as merged, by its own commit, and is not merged again', async () => {
  const { root, workspace, commit } = await cutAfterMove(false);
  commitIn(root, 'later.txt', 'later\n');

  const { cars, ended } = await workspace.build([memberOf(task, 1, { reopened: true })]);

  expect(cars).toEqual([]);
  expect(ended).toEqual([
    {
      ...{ taskId: task, attempt: 1 },
      merged: { status: 'merged', commit, into: 'main', tested: ['true'], ...evidence },
    },
  ]);
  expect(await workspace.workOf(task, 1)).toMatchObject({ merge_commit: commit });
  expect(await landAlone(workspace, task, 1, 'squash', 'Add it')).toMatchObject({
    status: 'nothing',
  });
});

test('what was taken back in a crash is answered as merged, and its work is discarded', async () => {
  const { workspace, commit } = await cutAfterMove(true);

  const { ended } = await workspace.build([memberOf(task, 1, { undo: true, force: true })]);

  expect(ended).toMatchObject([{ merged: { status: 'merged', commit } }]);
  const work = await workspace.workOf(task, 1);
  expect(work).toHaveProperty('discarded_at');
  expect(work).not.toHaveProperty('merge_commit');
});
