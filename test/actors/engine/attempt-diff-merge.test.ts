import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { gitIn, makeRepository, worktreesOf } from '../../support/git.ts';
import {
  finish,
  type Running,
  startSystem,
  type Turn,
  untilStatus,
} from '../../support/running.ts';

const write: Turn = {
  calls: [{ tool: 'write', arguments: { path: 'b.txt', content: 'new\n' } }],
};

const start = (turns: readonly Turn[]): Promise<Running> =>
  startSystem({
    root: makeRepository(),
    workspace: (root, stateDir) => worktreesOf(root, join(stateDir, 'worktrees')),
    turns: [...turns],
  });

const run = async (running: Running) => {
  const { task_id: id } = await running.service.create({ description: 'Add a file' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete', 'failed');
  return id;
};

test('status has the saved work; diff and merge take it', { tags: ['slow'] }, async () => {
  const running = await start([write, finish()]);
  const id = await run(running);

  const { work } = await running.service.status(id);
  const diff = await running.service.diff(id, null);
  const merged = await running.service.merge({ taskId: id });

  const commit = gitIn(running.root, 'rev-parse', `agent/${id}/1`);
  await vi.waitFor(async () => {
    const { entries } = await running.service.history({ taskId: id, limit: 1_000 });
    expect(entries.at(-1)).toMatchObject({
      type: 'log',
      data: {
        message: expect.stringMatching(/^merged into main \([0-9a-f]{12}\), not tested$/),
        merge_commit: expect.stringMatching(/^[0-9a-f]{40}$/),
      },
    });
  });
  expect(work).toEqual({
    branch: `agent/${id}/1`,
    commit,
    files: 1,
    insertions: 1,
    deletions: 0,
  });
  expect(diff).toMatchObject({ task_id: id, attempt: 1, guarded: [] });
  expect(diff.patch).toContain('+new');
  expect(merged).toMatchObject({ task_id: id, attempt: 1, status: 'merged', into: 'main' });
  expect(existsSync(join(running.root, 'b.txt'))).toBe(true);
  expect((await running.service.status(id)).work?.merged_at).toMatch(/^20/);
  expect(await running.service.merge({ taskId: id })).toMatchObject({ status: 'nothing' });
});

test('an attempt that is not complete is merged only by force', { tags: ['slow'] }, async () => {
  const running = await start([write, finish('no', 'failed')]);
  const id = await run(running);

  await expect(running.service.merge({ taskId: id })).rejects.toMatchObject({
    code: 'event_not_allowed',
  });
  expect(existsSync(join(running.root, 'b.txt'))).toBe(false);

  expect(await running.service.merge({ taskId: id, force: true })).toMatchObject({
    status: 'merged',
  });
});

test('a task without work has none to show or merge', async () => {
  const running = await start([finish()]);
  const { task_id: id } = await running.service.create({ description: 'x' });

  await expect(running.service.diff(id, null)).rejects.toMatchObject({ code: 'event_not_allowed' });
  await expect(running.service.merge({ taskId: id })).rejects.toMatchObject({
    code: 'event_not_allowed',
  });
  await expect(running.service.diff('bd-none', null)).rejects.toMatchObject({
    code: 'task_not_found',
  });
  expect(await running.service.status(id)).not.toHaveProperty('work');
});
