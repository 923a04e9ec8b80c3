import { expect, test } from 'vitest';
import type { Model } from '../../../src/actors/model/port.ts';
import { costOf } from '../../../src/actors/model/price.ts';
import { startServer, untilStatus } from '../../support/running.ts';

/** Never finishes; every call costs 1,000 tokens in and 100 out. */
const endless: Model = {
  name: 'endless',
  disclaimer: null,
  async *ask({ messages }) {
    const usage = { inputTokens: 1_000, outputTokens: 100, cachedTokens: 400 };
    const calls = [
      { id: 'a', tool: 'find', arguments: JSON.stringify({ pattern: `*${messages.length}` }) },
    ];
    yield { type: 'answered', text: '', calls, truncated: false, usage };
  },
};
const price = { input: 2, cachedInput: 1, output: 10 };

test('the cost of a call counts cached tokens at their own price', () => {
  expect(costOf(price, { inputTokens: 1_000, outputTokens: 100, cachedTokens: 400 })).toBeCloseTo(
    0.0026,
    10,
  );
  expect(costOf(undefined, { inputTokens: 1, outputTokens: 1, cachedTokens: 0 })).toBeNull();
});

test('an attempt ends at its limit of cost, and says what it cost', async () => {
  const server = await startServer({
    model: endless,
    options: { prices: { scripted: price }, maxTurns: 50 },
  });
  const { task_id } = (await server.call('create', { description: 'never ends' })).result;

  await server.call('execute', { task_id, role: 'engineer', options: { max_cost_usd: 0.006 } });
  const view = await untilStatus(server, task_id, 'failed');

  expect(view.error).toMatchObject({
    code: 'budget_exceeded',
    facts: { limit: 'max_cost_usd', max_cost_usd: 0.006 },
  });
  expect(view.usage.turns).toBe(3);
  expect(view.usage.cost_usd).toBeCloseTo(0.0078, 10);
});

test('a limit of cost that cannot be kept is refused, and nothing begins', async () => {
  const server = await startServer({ model: endless });
  const { task_id } = (await server.call('create', { description: 'unpriced' })).result;

  const { error } = await server.call('execute', {
    task_id,
    role: 'engineer',
    options: { max_cost_usd: 1 },
  });

  expect(error.data).toMatchObject({
    code: 'invalid_params',
    fields: [{ path: 'options.max_cost_usd' }],
  });
  expect((await server.call('status', { task_id })).result).toMatchObject({
    status: 'queued',
    attempt: 0,
  });
});

test('a retry keeps the promise as well', async () => {
  const server = await startServer({ model: endless, options: { maxTurns: 1 } });
  const { task_id } = (await server.call('create', { description: 'unpriced' })).result;
  await server.call('execute', { task_id, role: 'engineer' });
  await untilStatus(server, task_id, 'failed');

  const { error } = await server.call('retry', { task_id, options: { max_cost_usd: 1 } });

  expect(error.data).toMatchObject({
    code: 'invalid_params',
    fields: [{ path: 'options.max_cost_usd' }],
  });
  expect((await server.call('retry', { task_id })).result.task_id).toBe(task_id);
});
