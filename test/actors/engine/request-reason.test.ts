import { expect, test } from 'vitest';
import type { TaskId } from '../../../src/machines/task.ts';
import { finish, startSystem, untilStatus } from '../../support/running.ts';

test('why a task is retried is in its journal with the request and is no reason for its end', async () => {
  const running = await startSystem({ turns: [finish('gave up', 'failed'), finish('well')] });
  const { service, store, tracker } = running;
  const { task_id: id } = await service.create({ description: 'a task' });
  await service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'failed');

  const retried = await service.retry(id, null, null, 'with a better model');
  const waiting = await service.explain(id);
  await untilStatus(running, id, 'complete', 'failed');

  const entries = store.read({ taskId: id, after: 0, limit: 1_000 });
  const request = entries.findIndex(
    ({ cause }) => cause !== null && JSON.parse(cause).type === 'retry',
  );
  expect([retried.request_reason, waiting.request_reason]).toEqual([
    'with a better model',
    'with a better model',
  ]);
  expect(JSON.parse(entries[request]?.cause ?? '{}')).toMatchObject({
    reason: 'with a better model',
  });
  expect(entries[request + 1]).toMatchObject({ type: 'log' });
  expect(JSON.parse(entries[request + 1]?.data ?? '{}')).toEqual({
    level: 'info',
    decision: { kind: 'retried', said: 'with a better model' },
    message: 'a person asked to retry it: with a better model',
  });
  const tracked = await tracker.find(id as TaskId);
  expect(JSON.stringify(tracked)).not.toContain('better model');
});

test('a reason is forgotten with the next run, and none is shown where none was given', async () => {
  const running = await startSystem({ turns: [finish()] });
  const { service } = running;
  const { task_id: id } = await service.create({ description: 'a task' });
  await service.execute({ task: id, role: 'engineer', options: {} });
  await untilStatus(running, id, 'complete');

  const silent = await service.reopen(id, null);
  await service.close(id, null);
  const reopened = await service.reopen(id, 'the tests fail');
  await service.execute({ task: id, role: 'engineer', options: {} });
  const again = await untilStatus(running, id, 'complete');

  expect(reopened.request_reason).toBe('the tests fail');
  for (const view of [silent, again]) expect(view.request_reason).toBeUndefined();
});
