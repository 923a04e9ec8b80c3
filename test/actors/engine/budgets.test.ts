import { expect, test, vi } from 'vitest';
import type { Model } from '../../../src/actors/model/port.ts';
import { untilParked } from '../../support/provider-limits.ts';
import { type Running, startSystem, untilStatus } from '../../support/running.ts';

/** Each call costs 1 USD: a million tokens of input. */
const dear = { input: 1, cachedInput: 1, output: 0 };
const usage = { inputTokens: 1_000_000, outputTokens: 0, cachedTokens: 0 };
const look = (n: number) => ({
  id: `look-${n}`,
  tool: 'find',
  arguments: JSON.stringify({ pattern: `*${n}` }),
});
const finish = {
  id: 'end',
  tool: 'finish',
  arguments: JSON.stringify({ status: 'done', summary: 'done' }),
};

/** Works for as many calls, then finishes. `asked` counts the calls of all tasks. */
const worker = (calls: number) => {
  const asked: string[] = [];
  const model: Model = {
    name: 'worker',
    disclaimer: null,
    async *ask({ asker, messages }) {
      asked.push(asker.taskId);
      const mine = asked.filter((id) => id === asker.taskId).length;
      yield {
        type: 'answered',
        text: '',
        calls: [mine >= calls ? finish : look(messages.length)],
        truncated: false,
        usage,
      };
    },
  };
  return { model, asked };
};

const none = { runUsd: null, dayUsd: null, monthUsd: null };
const open = async (calls: number, budgets: object, more = {}) => {
  const { model, asked } = worker(calls);
  const running = await startSystem({
    model,
    options: { prices: { scripted: dear }, budgets: { ...none, ...budgets }, ...more },
  });
  return { running, asked };
};
const create = async ({ service }: Running) =>
  (await service.create({ description: 'work' })).task_id;
const begin = async (running: Running, options = {}) => {
  const task = await create(running);
  await running.service.execute({ task, role: 'engineer', options });
  return task;
};
const setBudgets = ({ system }: Running, budgets: object) =>
  system.reconfigure({ ...system.settings(), budgets: { ...none, ...budgets } });

test('at the budget of a run no further call begins, the task is parked, and no work is lost', async () => {
  const { running, asked } = await open(4, { runUsd: 2 });
  const id = await begin(running);

  const parked = await untilParked(running, id);
  const explained = await running.service.explain(id);
  const slots = running.system.slotUse();

  expect(asked).toHaveLength(2);
  expect(parked).toMatchObject({
    status: 'queued',
    phase: 'backing_off',
    attempt: 1,
    parked_reason: 'budget.run_usd: 2 of 2 USD are spent',
    usage: { cost_usd: 2, model_calls: 2, turns: 2 },
  });
  expect(explained.reason).toMatch(/parked until its run may cost more.*agent run .* --max-cost/);
  expect(explained.guards).toContainEqual({
    guard: 'withinBudget',
    value: false,
    inputs: { budget: 'run', detail: parked.parked_reason, ends: null },
  });
  expect(slots).toMatchObject({ running: 0, waiting: 0 });

  await running.service.retry(id, null, null, null);
  await untilParked(running, id);
  expect(asked, 'a retry does not pass a budget').toHaveLength(2);

  setBudgets(running, { runUsd: 10 });
  const ended = await untilStatus(running, id, 'complete', 'failed');

  expect(ended).toMatchObject({ status: 'complete', attempt: 1, usage: { cost_usd: 4 } });
});

test('a new run with more lets a parked task go on, in the same attempt', async () => {
  const { running, asked } = await open(4, {});
  const id = await create(running);
  const run = (maxCostUsd: number) =>
    running.service.run({ taskIds: [id], role: 'engineer', options: {}, maxCostUsd });
  await run(2);
  await untilParked(running, id);

  const { accepted, skipped } = await run(5);
  const ended = await untilStatus(running, id, 'complete', 'failed');

  expect({ accepted: accepted.map(({ task_id }) => task_id), skipped }).toEqual({
    accepted: [id],
    skipped: [],
  });
  expect(ended).toMatchObject({ status: 'complete', attempt: 1, usage: { cost_usd: 4 } });
  expect(asked).toHaveLength(4);
});

test('a run that goes on with an amount may cost that in all', async () => {
  const { running, asked } = await open(9, {});
  const id = await create(running);
  const run = (maxCostUsd: number) =>
    running.service.run({ taskIds: [id], role: 'engineer', options: {}, maxCostUsd });
  await run(2);
  await untilParked(running, id);

  await run(5);
  await vi.waitFor(async () =>
    expect((await untilParked(running, id)).parked_reason).toBe(
      'budget.run_usd: 5 of 5 USD are spent',
    ),
  );
  await run(3);
  await vi.waitFor(async () =>
    expect((await untilParked(running, id)).parked_reason).toBe(
      'budget.run_usd: 5 of 3 USD are spent',
    ),
  );

  expect(asked).toHaveLength(5);
});

test('the amount of a run holds also for a task that waits for a budget of the day', async () => {
  const { running, asked } = await open(9, { dayUsd: 1 });
  const id = await begin(running);
  await untilParked(running, id);

  await running.service.run({ taskIds: [id], role: 'engineer', options: {}, maxCostUsd: 2 });
  setBudgets(running, {});
  await vi.waitFor(async () =>
    expect((await untilParked(running, id)).parked_reason).toBe(
      'budget.run_usd: 2 of 2 USD are spent',
    ),
  );

  expect(asked).toHaveLength(3);
});

test('a retry with an amount raises the budget of the run at which the attempt waits', async () => {
  const { running, asked } = await open(4, { runUsd: 2 });
  const id = await begin(running);
  await untilParked(running, id);

  await running.service.retry(id, null, { maxCostUsd: 3 }, null);
  await vi.waitFor(async () =>
    expect((await untilParked(running, id)).parked_reason).toBe(
      'budget.run_usd: 3 of 3 USD are spent',
    ),
  );
  await running.service.retry(id, null, { maxCostUsd: 10 }, null);
  const ended = await untilStatus(running, id, 'complete', 'failed');

  expect(ended).toMatchObject({ status: 'complete', attempt: 1, usage: { cost_usd: 4 } });
  expect(asked).toHaveLength(4);
});

test('a retry with an amount of a task whose run is at its budget is a run of its own', async () => {
  const { running, asked } = await open(9, {});
  const id = await create(running);
  await running.service.run({
    ...{ taskIds: [id], role: 'engineer', maxCostUsd: 2 },
    options: { maxCostUsd: 2 },
  });
  await untilStatus(running, id, 'failed');

  await running.service.retry(id, null, { maxCostUsd: 3 }, null);
  const ended = await untilStatus(running, id, 'failed');

  expect(ended).toMatchObject({ attempt: 2, error: { code: 'budget_exceeded' } });
  expect(asked).toHaveLength(5);
});

test('a run counts the calls of all its tasks, passed by no more than those in flight', async () => {
  const { running, asked } = await open(3, {}, { cap: 2 });
  const ids = [await create(running), await create(running), await create(running)];

  await running.service.run({ taskIds: ids, role: 'engineer', options: {}, maxCostUsd: 4 });
  for (const id of ids) await untilStatus(running, id, 'queued', 'complete');
  await vi.waitFor(() =>
    expect(running.system.slotUse()).toMatchObject({ running: 0, waiting: 0 }),
  );

  expect(asked.length).toBeGreaterThanOrEqual(4);
  expect(asked.length).toBeLessThanOrEqual(5);
});

test('a budget of the day holds for every task, also before its attempt begins, until the next day', async () => {
  const { running, asked } = await open(2, { dayUsd: 1, monthUsd: 100 });
  const first = await untilParked(running, await begin(running));

  const second = await untilParked(running, await begin(running));

  const now = new Date();
  const tomorrow = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1);
  expect(first).toMatchObject({
    parked_reason: 'budget.day_usd: 1 of 1 USD are spent',
    parked_until: new Date(tomorrow).toISOString(),
  });
  expect(second).toMatchObject({ attempt: 0, parked_reason: first.parked_reason });
  expect(asked).toHaveLength(1);

  setBudgets(running, { dayUsd: 50 });

  for (const id of [first, second].map(({ task_id }) => task_id))
    expect((await untilStatus(running, id, 'complete', 'failed')).status).toBe('complete');
});

test('a call that failed or was cut counts, by what was reported', async () => {
  const asked: string[] = [];
  const model: Model = {
    name: 'failing',
    disclaimer: null,
    async *ask() {
      asked.push('call');
      const failure = {
        code: 'model_failed',
        message: 'cut',
        facts: { retry_after_ms: 1 },
      } as const;
      yield { type: 'failed', failure: { ...failure, retryable: true }, usage };
    },
  };
  const prices = { scripted: dear };
  const running = await startSystem({
    model,
    options: { prices, maxModelRetries: 9, budgets: { ...none, dayUsd: 2 } },
  });

  const parked = await untilParked(running, await begin(running));

  expect(parked).toMatchObject({ usage: { cost_usd: 2, model_calls: 2, turns: 0 } });
  expect(asked).toHaveLength(2);
  setBudgets(running, {});
  const limited = await begin(running, { maxCostUsd: 3 });
  const failed = await untilStatus(running, limited, 'failed');
  expect(failed).toMatchObject({ error: { code: 'budget_exceeded' }, usage: { cost_usd: 3 } });
});

test('a retry is a run of its own where the task ran before there was a budget of runs', async () => {
  const { running, asked } = await open(9, {});
  const id = await begin(running, { maxCostUsd: 1 });
  await untilStatus(running, id, 'failed');
  setBudgets(running, { runUsd: 2 });

  await running.service.retry(id, 'engineer', { maxCostUsd: 50 }, null);
  const parked = await untilParked(running, id);

  expect(parked.parked_reason).toBe('budget.run_usd: 2 of 2 USD are spent');
  expect(asked).toHaveLength(3);
});

test('a budget of the month holds until the first day of the next', async () => {
  const { running } = await open(2, { monthUsd: 1 });

  const { parked_reason, parked_until } = await untilParked(running, await begin(running));

  const now = new Date();
  const next = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
  expect({ parked_reason, parked_until }).toEqual({
    parked_reason: 'budget.month_usd: 1 of 1 USD are spent',
    parked_until: next.toISOString(),
  });
});

test('a run that would be unpriced is refused where a budget is set', async () => {
  const { running } = await open(1, { dayUsd: 1 }, { prices: {} });

  await expect(begin(running)).rejects.toMatchObject({ code: 'invalid_params' });
});

test('the budget of a run needs a price of every way to begin one', async () => {
  const { running, asked } = await open(1, { runUsd: 1 });
  const id = await create(running);
  const unpriced = { model: 'unpriced' };

  const { service } = running;
  for (const begun of [
    () => service.retry(id, 'engineer', unpriced, null),
    () => service.run({ taskIds: [id], role: 'engineer', options: unpriced }),
    () => service.execute({ task: id, role: 'engineer', options: unpriced }),
  ])
    await expect(begun()).rejects.toMatchObject({ code: 'invalid_params' });
  expect(asked).toHaveLength(0);
});

test('no paid call begins whose cost is not known, also of a run from before the budget', async () => {
  const { model, asked } = worker(3);
  const first: Model = {
    ...model,
    async *ask(request, signal) {
      setBudgets(running, { dayUsd: 5 });
      yield* model.ask(request, signal);
    },
  };
  const running = await startSystem({ model: first, options: { prices: {} } });
  const id = await begin(running, { model: 'unpriced' });

  const ended = await untilStatus(running, id, 'failed', 'complete');

  expect(asked).toHaveLength(1);
  expect(ended.error).toMatchObject({
    code: 'budget_exceeded',
    message: expect.stringContaining('the price of unpriced is not known'),
  });
});
