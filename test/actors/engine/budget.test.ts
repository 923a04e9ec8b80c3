import { expect, test } from 'vitest';
import type { Model } from '../../../src/actors/model/port.ts';
import { costOf } from '../../../src/actors/model/price.ts';
import { startServer, untilStatus } from '../../support/running.ts';

/** Never finishes; every call costs 1,000 tokens in and 100 out. */
const endless: Model = {
  name: 'endless',
  disclaimer: null,
  async *ask({ messages }) {
    const usage = {
      ...{ inputTokens: 1_000, outputTokens: 100, cachedTokens: 400 },
      cacheWriteTokens: 500,
    };
    const calls = [
      { id: 'a', tool: 'find', arguments: JSON.stringify({ pattern: `*${messages.length}` }) },
    ];
    yield { type: 'answered', text: '', calls, truncated: false, usage };
  },
};
const price = { input: 2, cachedInput: 1, cacheWrite: 3, output: 10 };

test.each([
  [{ cachedTokens: 400 }, 0.0026],
  [{ cachedTokens: 400, cacheWriteTokens: 500 }, 0.0031],
  // A provider that counts more of a part than of the whole is charged for the whole.
  [{ cachedTokens: 400, cacheWriteTokens: 5_000 }, 0.0032],
  [{ cachedTokens: 4_000, cacheWriteTokens: 500 }, 0.002],
])('of 1,000 tokens in, %j have their own price: %d USD with 100 out', (parts, usd) => {
  expect(costOf(price, { inputTokens: 1_000, outputTokens: 100, ...parts })).toBeCloseTo(usd, 10);
});

test('without a price there is no cost', () => {
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
  // 100 tokens at 2, 400 at 1, 500 at 3 and 100 out at 10: 0.0031 USD a call.
  expect(view.usage).toMatchObject({ turns: 2, cached_tokens: 800, cache_write_tokens: 1_000 });
  expect(view.usage.cost_usd).toBeCloseTo(0.0062, 10);
  expect((await server.call('usage', {})).result.total).toMatchObject({
    cache_write_tokens: 1_000,
  });
  expect(await server.store.counters()).toMatchObject({
    cachedTokens: 800,
    cacheWriteTokens: 1_000,
  });
});

test('a model without a price is named in the log once', async () => {
  const server = await startServer({ model: endless, options: { maxTurns: 2 } });
  const { task_id } = (await server.call('create', { description: 'unpriced' })).result;

  await server.call('execute', { task_id, role: 'engineer' });
  await untilStatus(server, task_id, 'failed');

  const named = server.logged.filter(({ message }) => message.includes('is not known'));
  expect(named).toEqual([
    {
      message: expect.stringMatching(/^the price of a model .*; set it in api\.prices$/),
      facts: { model: 'scripted' },
    },
  ]);
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
