import { expect, test } from 'vitest';
import { createBoardTasks } from '../../../src/cli/board/board-command.ts';
import type { Client } from '../../../src/cli/client/client.ts';
import { createProgress } from '../../../src/cli/graph/progress.ts';
import { createIo } from '../../../src/cli/output/io.ts';
import { aTask } from '../output/a-task.ts';

const silent = { isTTY: false, write: () => true };
const work = { branch: 'agent/bd-a1b2', commit: 'c0ffee', files: 1, insertions: 1, deletions: 0 };

test('a task that was merged and ran again is to review, with the work of its last attempt', async () => {
  let task = aTask({
    ...{ status: 'complete', phase: 'complete', attempt: 1 },
    work: { ...work, merged_at: '2026-11-22T11:57:00.000Z' },
  });
  const client = {
    call: async () => ({ tasks: [task], total: 1 }),
  } as unknown as Client;
  const board = createBoardTasks(client, createProgress());
  const look = async (): Promise<string | undefined> => {
    await board.load(createIo(silent, silent));
    return board.board().tasks[0]?.section;
  };

  expect(await look()).toBe('done');
  const updated_at = new Date(Date.now() + 60_000).toISOString();
  task = { ...task, attempt: 2, updated_at, work };
  expect(await look()).toBe('review');
});

test('a question of an agent at work stands above what failed before', async () => {
  const failed = aTask({
    task_id: 'bd-1',
    status: 'failed',
    created_at: '2026-01-01T00:00:00.000Z',
  });
  const asks = aTask({
    ...{ task_id: 'bd-2', status: 'started', created_at: '2026-01-02T00:00:00.000Z' },
    awaiting: { input_id: 'i', kind: 'input', question: 'Red?', calls: [] },
  });
  const call = async () => ({ tasks: [failed, asks], total: 2 });
  const board = createBoardTasks({ call } as unknown as Client, createProgress());
  await board.load(createIo(silent, silent));

  expect(board.board().tasks.map(({ task }) => task.view.task_id)).toEqual(['bd-2', 'bd-1']);
});
