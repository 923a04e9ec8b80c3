import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Model, ModelEvent, ModelRequest } from '../../../src/actors/model/port.ts';
import type { Failure } from '../../../src/machines/task.ts';
import {
  finish,
  hang,
  type Running,
  type Setting,
  startSystem,
  untilStatus,
} from '../../support/running.ts';

const away = (facts: object = {}, retryable = true): Failure => ({
  code: 'model_failed',
  message: 'the provider answered 503',
  facts: { kind: 'http', ...facts },
  retryable,
});

/** A model that fails so often, then answers with `finish`. */
const failing = (times: number, failure: Failure, requests: ModelRequest[] = []): Model => ({
  name: 'failing',
  disclaimer: null,
  async *ask(request): AsyncGenerator<ModelEvent> {
    requests.push({ ...request, messages: [...request.messages] });
    if (requests.length <= times) {
      yield { type: 'failed', failure };
      return;
    }
    const calls = finish('at last').calls.map(({ tool, arguments: args }) => ({
      id: `c${requests.length}`,
      tool,
      arguments: JSON.stringify(args),
    }));
    const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
    yield { type: 'answered', text: '', calls, truncated: false, usage };
  },
});

const open = async (setting: Setting) => {
  const running = await startSystem(setting);
  const { task_id: id } = await running.service.create({ description: 'a task' });
  const began = Date.now();
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  return { running, id, began };
};

const typesOf = ({ store }: Running, id: string) =>
  store
    .read({ taskId: id, after: 0, limit: 1_000 })
    .map(({ type, data }) => ({ type, ...JSON.parse(data) }));

test('a check that takes longer than the attempt may is ended, and so is the attempt', async () => {
  const running = await startSystem({ turns: [finish(), finish(), finish()] });
  const { task_id: id } = await running.service.create({ description: 'a task' });

  await running.service.execute({
    task: id,
    role: 'engineer',
    options: { timeoutMs: 1_000, verify: ['sleep 600'] },
  });

  const { error } = await untilStatus(running, id, 'complete', 'failed');
  expect(error?.code).toBe('timed_out');
});

test('a check that a person cancels is not said to have failed', async () => {
  const running = await startSystem({ turns: [finish()] });
  const { task_id: id } = await running.service.create({ description: 'a task' });
  await running.service.execute({ task: id, role: 'engineer', options: { verify: ['sleep 600'] } });
  const linesOfVerify = () =>
    typesOf(running, id).flatMap(({ type, message }) =>
      type === 'log' && String(message).startsWith('verify') ? [message] : [],
    );
  await vi.waitFor(() => expect(linesOfVerify()).toEqual(['verify: sleep 600']));

  await running.service.cancel(id, null);

  await untilStatus(running, id, 'cancelled');
  await vi.waitFor(() =>
    expect(linesOfVerify()).toEqual(['verify: sleep 600', 'verify stopped: sleep 600']),
  );
});

test('a call of the model that may pass is made again in the same attempt, after the pause that was asked for', async () => {
  const requests: ModelRequest[] = [];
  const model = failing(2, away({ retry_after_ms: 300 }), requests);
  const { running, id, began } = await open({ model, options: { maxModelRetries: 3 } });
  const pausing = vi.waitFor(async () =>
    expect((await running.service.status(id)).phase).toBe('backing_off'),
  );

  const view = await untilStatus(running, id, 'complete');
  await pausing;

  expect(view).toMatchObject({
    attempt: 1,
    result: 'at last',
    usage: { turns: 1, model_calls: 3 },
  });
  expect(Date.now() - began).toBeGreaterThanOrEqual(600);
  expect(requests.map(({ messages }) => messages.length)).toEqual([1, 1, 1]);
  expect(new Set(requests.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(3);
  expect(typesOf(running, id).filter(({ type }) => type === 'api_call_complete')).toMatchObject([
    { ok: false, error: { message: 'the provider answered 503' } },
    { ok: false },
    { ok: true },
  ]);
});

test('it is not made again for ever, nor when that cannot help', async () => {
  const tooOften = await open({
    model: failing(99, away({ retry_after_ms: 1 })),
    options: { maxModelRetries: 2 },
  });
  const hopeless = await open({
    model: failing(99, away({}, false)),
    options: { maxModelRetries: 2 },
  });

  const [one, other] = [
    await untilStatus(tooOften.running, tooOften.id, 'failed'),
    await untilStatus(hopeless.running, hopeless.id, 'failed'),
  ];

  expect([one.usage.model_calls, other.usage.model_calls]).toEqual([3, 1]);
  expect(one.error).toMatchObject({ code: 'model_failed', message: 'the provider answered 503' });
});

test('a pause survives a restart and ends then', async () => {
  const setting = {
    model: failing(1, away({ retry_after_ms: 1_500 })),
    options: { maxModelRetries: 2 },
  };
  const { running, id } = await open(setting);
  await vi.waitFor(async () =>
    expect((await running.service.status(id)).phase).toBe('backing_off'),
  );
  await running.stop();

  const next = await startSystem({ ...setting, root: running.root, stateDir: running.stateDir });

  expect(await untilStatus(next, id, 'complete')).toMatchObject({ attempt: 1, result: 'at last' });
});

const mending = [
  finish('first try'),
  { calls: [{ tool: 'write', arguments: { path: 'right', content: '' } }] },
  finish('second try'),
];

test('work that does not pass goes back to its agent with what the check said', async () => {
  const running = await startSystem({ turns: mending });
  const { task_id: id } = await running.service.create({ description: 'a task' });
  const verify = ['echo checked >> checks', 'test -e right || { echo nothing is right; exit 3; }'];
  await running.service.execute({ task: id, role: 'engineer', options: { verify } });

  const view = await untilStatus(running, id, 'complete');

  expect(view).toMatchObject({ attempt: 1, result: 'second try', usage: { turns: 3 } });
  expect(readFileSync(join(running.root, 'checks'), 'utf8')).toBe('checked\nchecked\n');
});

test('the agent is told the command, its exit code and its output', async () => {
  const requests: ModelRequest[] = [];
  const running = await startSystem({ model: failing(0, away(), requests) });
  const { task_id: id } = await running.service.create({ description: 'a task' });
  await running.service.execute({
    task: id,
    role: 'engineer',
    options: { verify: ['echo red; exit 3'] },
  });

  const view = await untilStatus(running, id, 'failed');

  expect(view.error).toMatchObject({
    code: 'verify_failed',
    facts: { command: 'echo red; exit 3', exit_code: 3 },
  });
  expect(requests).toHaveLength(3);
  const [began, ended] = typesOf(running, id).filter(({ command }) => command !== undefined);
  expect(began).toMatchObject({ type: 'log', message: 'verify: echo red; exit 3' });
  expect(ended).toMatchObject({
    type: 'log',
    level: 'warn',
    message: 'verify failed: echo red; exit 3 ended with exit code 3',
    exit_code: 3,
    output: expect.stringMatching(/^red/),
  });
  const results = readFileSync(join(running.root, view.results_path ?? ''), 'utf8');
  expect(results).toMatch(/Of its output, what failed first and the end:\n\n```text\nred\n/);
  expect(requests[1]?.messages.at(-1)).toMatchObject({
    role: 'user',
    text: expect.stringMatching(
      /not accepted yet.*"echo red; exit 3".*exit code 3[\s\S]*red[\s\S]*call finish again/,
    ),
  });
});

test('the commands of a role hold for every task of it', { tags: ['slow'] }, async () => {
  const running = await startSystem({ turns: [finish()], role: { verify: ['test -e asked'] } });
  const { task_id: id } = await running.service.create({ description: 'a task' });

  await running.service.execute({
    task: id,
    role: 'engineer',
    options: { verify: ['touch asked'] },
  });

  expect((await untilStatus(running, id, 'failed')).error).toMatchObject({
    facts: { command: 'test -e asked' },
  });
});

test('work that was sent back before a restart is mended after it', async () => {
  const turns = [
    finish('first try'),
    ...hang.calls.map((call) => ({ calls: [call] })),
    finish('second try'),
  ];
  const running = await startSystem({ turns });
  const { task_id: id } = await running.service.create({ description: 'a task' });
  await running.service.execute({
    task: id,
    role: 'engineer',
    options: { verify: ['test -e right'] },
  });
  await vi.waitFor(() => readFileSync(join(running.root, 'pid'), 'utf8'));
  await running.stop();
  writeFileSync(join(running.root, 'right'), '');

  const next = await startSystem({ turns, root: running.root, stateDir: running.stateDir });

  expect(await untilStatus(next, id, 'complete')).toMatchObject({
    attempt: 1,
    result: 'second try',
  });
});

test('a drain lets who runs finish and gives no more slots', async () => {
  const wait = {
    calls: [{ tool: 'bash', arguments: { command: 'until [ -e go ]; do sleep 0.05; done' } }],
  };
  const { running, id } = await open({ turns: [wait, finish('drained')], options: { cap: 1 } });
  const { task_id: other } = await running.service.create({ description: 'another' });
  await running.service.execute({ task: other, role: 'engineer', options: {} });

  const drained = running.system.drain(10_000);
  writeFileSync(join(running.root, 'go'), '');
  await drained;

  expect((await running.service.status(id)).result).toBe('drained');
  expect(await running.service.status(other)).toMatchObject({
    status: 'queued',
    phase: 'waiting_for_slot',
  });
});

test('a drain that takes too long parks what runs', async () => {
  const { running, id } = await open({ turns: [hang] });
  const began = Date.now();

  await running.system.drain(300);

  expect(Date.now() - began).toBeLessThan(30_000);
  expect((await running.service.status(id)).status).toBe('started');
});
