import { expect, test } from 'vitest';
import { createDependencyWaits } from '../../../src/actors/engine/tasks/dependency-waits.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import type { TrackedTask } from '../../../src/machines/tracked-task.ts';

const [task, dependency] = ['bd-a' as TaskId, 'bd-b' as TaskId];
const taken: TrackedTask = {
  id: task,
  title: 'a task',
  description: '',
  status: 'in_progress',
  assignee: 'amy',
  priority: 2,
  labels: [],
  dependencies: [dependency],
  unmet: [dependency],
  ready: false,
  createdAt: '2026-01-01T00:00:00Z',
  updatedAt: '2026-01-01T00:00:00Z',
  closedAt: null,
};

test('a task that somebody else takes waits for its dependencies all the same, and is looked up once', async () => {
  const waits = createDependencyWaits({
    tracker: { findMany: async () => [] },
    viewOf: () => Promise.reject(new Error('nobody asks')),
    policy: () => 'wait',
  });
  const wait = waits.wait(task, [dependency], new AbortController().signal);

  const isWaiting = waits.changed(taken);

  expect([isWaiting, waits.waitingFor(dependency)]).toEqual([true, [task]]);

  waits.changed({ ...taken, unmet: [] });

  expect(await wait).toBeNull();
  waits.stop();
});
