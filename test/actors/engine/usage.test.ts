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
const untilThinks = ({ service }: Running, id: string) =>
  vi.waitFor(async () => expect((await service.status(id)).phase).toBe('thinking'), 10_000);
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

/** Answers nothing until it is stopped, which costs something. */
const stopped: Model = {
  name: 'm',
  disclaimer: null,
  async *ask(_, signal) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    yield {
      type: 'failed',
      failure: { code: 'model_failed', message: 'cancelled', facts: {}, retryable: false },
      usage: { inputTokens: 1_000, outputTokens: 100, cachedTokens: 0 },
    };
  },
};
const price = { input: 2, cachedInput: 1, cacheWrite: 3, output: 10 };

test.each([
  ['a cancel', 'cancelled', {}],
  ['its deadline', 'failed', { timeoutMs: 1_000 }],
] as const)('a call that %s cut counts in its attempt', async (_, status, options) => {
  const running = await startSystem({
    model: stopped,
    options: { prices: { scripted: price }, maxRetries: 0 },
  });
  const { task_id: id } = await running.service.create({ description: 'x' });
  await running.service.execute({ task: id, role: 'engineer', options });
  await untilThinks(running, id);
  if (status === 'cancelled') await running.service.cancel(id, null);
  else await untilStatus(running, id, status);

  const { usage, attempts } = await running.service.status(id);

  const cost = { input_tokens: 1_000, output_tokens: 100, cost_usd: expect.closeTo(0.003, 10) };
  expect(usage).toMatchObject({ ...cost, model_calls: 1, turns: 0 });
  expect(attempts).toMatchObject([{ ...cost, status, model_calls: 1 }]);
  const { total, spent } = await running.service.usage(null);
  expect(total).toMatchObject(cost);
  expect(spent.day_usd).toBeCloseTo(0.003, 10);
});

test('an attempt after one with a cut call begins at nothing', async () => {
  const running = await startSystem({
    model: stopped,
    options: { prices: { scripted: price } },
  });
  const { task_id: id } = await running.service.create({ description: 'x' });
  for (const attempt of [1, 2]) {
    if (attempt === 1) await running.service.execute({ task: id, role: 'engineer', options: {} });
    else await running.service.retry(id, null, null, null);
    await untilThinks(running, id);
    await running.service.cancel(id, null);
  }

  const { usage, attempts } = await running.service.status(id);

  expect(usage).toMatchObject({ input_tokens: 1_000, model_calls: 1 });
  expect(attempts?.map(({ input_tokens }) => input_tokens)).toEqual([1_000, 1_000]);
});
