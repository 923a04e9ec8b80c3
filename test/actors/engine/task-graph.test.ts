import { expect, test } from 'vitest';
import { orderTasks, withDependencies } from '../../../src/actors/engine/queries/task-graph.ts';
import type { TaskId } from '../../../src/machines/task.ts';
import { startSystem } from '../../support/running.ts';

/** A tracker with a chain of tasks, and how often it was read. */
const openChain = async (length: number) => {
  const { service, tracker } = await startSystem({});
  let last: string | undefined;
  for (let n = 0; n < length; n += 1) {
    const { task_id } = await service.create({
      description: `task ${n}`,
      ...(last === undefined ? {} : { dependencies: [last] }),
    });
    last = task_id;
  }
  const reads = { findMany: 0, page: 0 };
  return {
    last: last as TaskId,
    reads,
    tracker: {
      findMany: (...given: Parameters<typeof tracker.findMany>) => {
        reads.findMany += 1;
        return tracker.findMany(...given);
      },
      page: (...given: Parameters<typeof tracker.page>) => {
        reads.page += 1;
        return tracker.page(...given);
      },
    },
  };
};

test('a long chain of tasks is read in a few reads, whole', async () => {
  const { last, reads, tracker } = await openChain(120);

  const found = await withDependencies(tracker, [last]);

  expect(found.size).toBe(120);
  expect(orderTasks([...found.values()]).generations).toHaveLength(120);
  expect(reads).toEqual({ findMany: 50, page: 4 });
});

test('a short one needs no other tasks', async () => {
  const { last, reads, tracker } = await openChain(3);

  expect((await withDependencies(tracker, [last])).size).toBe(3);
  expect(reads).toEqual({ findMany: 3, page: 0 });
});
