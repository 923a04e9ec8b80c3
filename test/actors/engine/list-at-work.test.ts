import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { hang, startSystem } from '../../support/running.ts';

test('pages of a status hold the tasks at work that the tracker has otherwise, each once', async () => {
  const { service, tracker } = await startSystem({ turns: [hang], options: { cap: 1 } });
  const ids: TaskId[] = [];
  for (let n = 0; n < 5; n += 1) {
    ids.push((await service.create({ description: `task ${n}` })).task_id as TaskId);
    // Tasks of one millisecond are listed by their ids.
    await delay(2);
  }
  for (const task of ids.slice(0, 4))
    await service.execute({ task, role: 'engineer', options: {} });
  const [first, second, third, fourth, open] = ids as [TaskId, TaskId, TaskId, TaskId, TaskId];
  await tracker.release(third, 'agent-failed', () => {});

  const pagesOf = async (status: string, order: 'oldest' | 'newest') => {
    const listed: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const given = { status, order, limit: 1, ...(cursor === undefined ? {} : { cursor }) };
      const page = await service.list(given);
      listed.push(...page.tasks.map(({ task_id }) => task_id));
      cursor = page.next_cursor;
      if (cursor === undefined) return listed;
    }
  };

  expect(await pagesOf('queued', 'oldest')).toEqual([second, third, fourth, open]);
  expect(await pagesOf('queued', 'newest')).toEqual([open, fourth, third, second]);
  expect(await pagesOf('active', 'oldest')).toEqual([first, second, third, fourth]);
  expect(await pagesOf('active', 'newest')).toEqual([fourth, third, second, first]);
  expect(await pagesOf('failed', 'oldest')).toEqual([]);
});
