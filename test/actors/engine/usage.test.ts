import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Model } from '../../../src/actors/model/port.ts';
import { finish, hang, type Running, startSystem, untilStatus } from '../../support/running.ts';

const run = async (running: Running, role: 'engineer' | 'tester', until: string[]) => {
  const { task_id: id } = await running.service.create({ description: 'x' });
  await running.service.execute({ task: id, role, options: {} });
  await untilStatus(running, id, ...until);
  return id;
};
const today = () => new Date().toISOString().slice(0, 10);

test('attempts are summed per day and role, however they end', async () => {
  const running = await startSystem({ turns: [finish()] });
  await run(running, 'engineer', ['complete']);
  await run(running, 'engineer', ['complete']);
  await run(running, 'tester', ['complete']);

  const { days, total } = await running.service.usage(null);

  expect(days.map(({ day, role, attempts, complete }) => [day, role, attempts, complete])).toEqual([
    [today(), 'engineer', 2, 2],
    [today(), 'tester', 1, 1],
  ]);
  expect(total).toMatchObject({ attempts: 3, complete: 3, failed: 0, model_calls: 3 });
  expect((await running.service.usage('2999-01-01')).days).toEqual([]);
});

test('a failed attempt that is followed by another one counts too, each once', async () => {
  let asked = 0;
  const model: Model = {
    name: 'm',
    disclaimer: null,
    async *ask() {
      asked += 1;
      yield {
        type: 'failed',
        failure: { code: 'model_failed', message: '500 boom', facts: {}, retryable: true },
      };
    },
  };
  const running = await startSystem({ model, options: { maxRetries: 1 } });

  const id = await run(running, 'engineer', ['failed']);

  expect(asked).toBe(2);
  const { attempts } = await running.service.status(id);
  expect(
    attempts?.map(({ attempt, status, model_calls }) => [attempt, status, model_calls]),
  ).toEqual([
    [1, 'failed', 1],
    [2, 'failed', 1],
  ]);
  expect((await running.service.usage(null)).total).toMatchObject({ attempts: 2, failed: 2 });
  const messages = running.store
    .read({ taskId: id, after: 0, limit: 1_000 })
    .flatMap(({ type, data }) => (type === 'log' ? [JSON.parse(data).message] : []));
  expect(messages).toContainEqual(
    expect.stringMatching(/^attempt 1 of 2 failed: model_failed: 500 boom; the next one begins in/),
  );
});

test('a cancelled attempt counts once, also when its task is closed later', async () => {
  const running = await startSystem({ turns: [hang] });
  const { task_id: id } = await running.service.create({ description: 'x' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  await vi.waitFor(() => expect(existsSync(join(running.root, 'pid'))).toBe(true), 10_000);

  await running.service.cancel(id, null);
  await running.service.close(id, null);

  const { total } = await running.service.usage(null);
  expect(total).toMatchObject({ attempts: 1, cancelled: 1, complete: 0 });
});

test('a task that was never run uses nothing', async () => {
  const running = await startSystem({ turns: [finish()] });
  const { task_id: id } = await running.service.create({ description: 'x' });

  await running.service.close(id, null);

  expect((await running.service.usage(null)).days).toEqual([]);
  expect(await running.service.status(id)).not.toHaveProperty('attempts');
});
