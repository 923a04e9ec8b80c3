import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Workspace } from '../../../src/actors/workspace/port.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { anAttempt } from '../../contracts/workspace.ts';
import { commitIn, gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import { landAlone } from '../../support/land-alone.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const save = async (workspace: Workspace, taskId: string) => {
  const attempt = anAttempt(1, taskId);
  const { root } = await workspace.open(attempt);
  writeFileSync(join(root, `${taskId}.txt`), 'new\n');
  await workspace.save(attempt, 'Change it');
};

const open = async () => {
  const [project, folder] = [makeRepository(), temporaryFolder()];
  const server = await worktreesOf(project, folder);
  const told: unknown[] = [];
  const watch = (workspace = server) => {
    const stop = workspace.watchMerges({
      merged: (work) => told.push(work),
      failed: (error) => told.push(error),
    });
    onTestFinished(stop);
    return stop;
  };
  const work = async (taskId: string) =>
    (await server.workOf(taskId as TaskId, 1))?.merged_at !== undefined;
  return { project, folder, server, told, watch, work };
};

const merged = (taskId: string) => ({
  ...{ taskId, attempt: 1, into: 'main' },
  commit: expect.stringMatching(/^[0-9a-f]{40}$/),
});

test('a merge by hand is seen, also when the branch moved on and the branch of the attempt is gone', {
  tags: ['slow'],
}, async () => {
  const { project, server, told, watch, work } = await open();
  watch();
  await save(server, 'bd-a1');
  await save(server, 'bd-a2');

  commitIn(project, 'mine.txt', 'mine\n');
  gitIn(project, 'merge', '--quiet', '--no-edit', 'agent/bd-a1/1');
  gitIn(project, 'branch', '-d', 'agent/bd-a1/1');

  await vi.waitFor(() => expect(told).toEqual([merged('bd-a1')]), 5_000);
  expect([await work('bd-a1'), await work('bd-a2')]).toEqual([true, false]);
  const again = await landAlone(server, 'bd-a1' as TaskId, 1, 'ff', 'x');
  expect(again).toMatchObject({ status: 'nothing', commit: gitIn(project, 'rev-parse', 'HEAD') });
});

test('somebody who looks at the branch of an attempt, or at a commit of it, has merged nothing', async () => {
  const { project, server, told, watch, work } = await open();
  await save(server, 'bd-a1');
  watch();

  gitIn(project, 'checkout', '--quiet', 'agent/bd-a1/1');
  await new Promise((resolve) => setTimeout(resolve, 500));
  gitIn(project, 'checkout', '--quiet', '--detach');
  await new Promise((resolve) => setTimeout(resolve, 500));
  gitIn(project, 'checkout', '--quiet', 'main');
  gitIn(project, 'merge', '--quiet', '--ff-only', 'agent/bd-a1/1');

  await vi.waitFor(() => expect(told).toEqual([merged('bd-a1')]), 5_000);
  expect(await work('bd-a1')).toBe(true);
});

test('a merge by another program is seen once, and one of our own is not', {
  tags: ['slow'],
}, async () => {
  const { project, folder, server, told, watch } = await open();
  watch();
  for (const id of ['bd-a1', 'bd-a2', 'bd-a3']) await save(server, id);
  const other = await worktreesOf(project, folder);

  await landAlone(server, 'bd-a1' as TaskId, 1, 'squash', 'x');
  await landAlone(other, 'bd-a2' as TaskId, 1, 'squash', 'x');
  await vi.waitFor(() => expect(told).toEqual([merged('bd-a2')]), 5_000);
  await landAlone(other, 'bd-a3' as TaskId, 1, 'squash', 'x');

  await vi.waitFor(() => expect(told).toEqual([merged('bd-a2'), merged('bd-a3')]), 5_000);
});

test('a merge by hand while nobody watched is seen at the start, and only once', {
  tags: ['slow'],
}, async () => {
  const { project, folder, server, told, watch } = await open();
  await save(server, 'bd-a1');
  gitIn(project, 'merge', '--quiet', 'agent/bd-a1/1');

  const stop = watch();
  await vi.waitFor(() => expect(told).toEqual([merged('bd-a1')]), 5_000);
  stop();
  const next = await worktreesOf(project, folder);
  watch(next);
  await save(next, 'bd-a2');
  gitIn(project, 'merge', '--quiet', '--no-edit', 'agent/bd-a2/1');

  await vi.waitFor(() => expect(told).toEqual([merged('bd-a1'), merged('bd-a2')]), 5_000);
});
