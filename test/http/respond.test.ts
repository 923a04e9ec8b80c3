import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import type { Model } from '../../src/actors/model/port.ts';
import { finish, hang, startServer, type Turn, untilStatus } from '../support/running.ts';
import { readFrames } from '../support/sse.ts';

const question = { calls: [{ tool: 'ask', arguments: { question: 'red or blue?' } }] };
const command = (text: string) => ({ calls: [{ tool: 'bash', arguments: { command: text } }] });
type Server = Awaited<ReturnType<typeof startServer>>;

const running = async (server: Server): Promise<string> => {
  const { task_id } = (await server.call('create', { description: 'choose a colour' })).result;
  await server.call('execute', { task_id, role: 'engineer' });
  return task_id;
};

const untilAsked = async (server: Server, id: string, event: string) => {
  const frames = await readFrames(
    `${server.base}/stream/${id}?after=0`,
    server.headers,
    (frame) => frame.event === event,
  );
  return frames.at(-1)?.body.data as { input_id: string };
};

test('an agent that asks waits for the answer and continues with it', async () => {
  const server = await startServer({ turns: [question, finish('so blue')] });
  const id = await running(server);
  const asked = await untilAsked(server, id, 'input_required');
  const waiting = (await server.call('status', { task_id: id })).result;
  const why = (await server.call('explain', { task_id: id })).result;
  const refused = (await server.call('close', { task_id: id })).error;

  const answer = await server.call('respond', {
    task_id: id,
    attempt: 1,
    input_id: asked.input_id,
    text: 'blue',
  });
  const done = await untilStatus(server, id, 'complete');

  expect(asked).toMatchObject({ input_id: 'input-1', kind: 'input', question: 'red or blue?' });
  expect(waiting).toMatchObject({ status: 'started', phase: 'awaiting_input', awaiting: asked });
  expect(why).toMatchObject({
    reason: 'it waits for a person: red or blue?',
    allowed_events: ['cancel', 'respond'],
    deadline: waiting.awaiting.deadline,
  });
  expect(refused.data).toMatchObject({ code: 'event_not_allowed', allowed: ['cancel', 'respond'] });
  expect(answer.result).toMatchObject({
    task_id: id,
    status: 'started',
    phase: 'waiting_for_slot',
  });
  expect(answer.result.awaiting).toBeUndefined();
  expect(done.result).toBe('so blue');
});

/** A model that plays these turns and records its last input. */
const hearing = (turns: readonly Turn[], heard: string[]): Model => ({
  name: 'hearing',
  disclaimer: null,
  async *ask({ messages }) {
    heard.push(messages.at(-1)?.text ?? '');
    const turn = messages.filter(({ role }) => role === 'assistant').length;
    const calls = (turns[turn]?.calls ?? []).map(({ tool, arguments: args }) => ({
      id: `call_${turn}`,
      tool,
      arguments: JSON.stringify(args),
    }));
    const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };
    yield { type: 'answered', text: '', calls, truncated: false, usage };
  },
});

test("a person's answer reaches the model", async () => {
  const heard: string[] = [];
  const server = await startServer({ model: hearing([question, finish('ok')], heard) });
  const id = await running(server);
  const { input_id } = await untilAsked(server, id, 'input_required');

  await server.call('respond', { task_id: id, attempt: 1, input_id, text: 'blue, like the sea' });
  await untilStatus(server, id, 'complete');

  expect(heard.at(-1)).toBe('A person answers:\n\nblue, like the sea');
});

test.each([
  ['allow', 'complete', true],
  ['deny', 'complete', false],
] as const)(
  'a call that needs approval runs only when a person allows it: %s',
  async (decision, status, made) => {
    const server = await startServer({
      turns: [command('echo made > made.txt'), finish()],
      role: { approvals: ['bash'] },
    });
    const id = await running(server);
    const asked = await untilAsked(server, id, 'approval_required');

    await server.call('respond', { task_id: id, attempt: 1, input_id: asked.input_id, decision });
    await untilStatus(server, id, status);

    const [end] = server.store
      .read({ taskId: id, after: 0, limit: 999 })
      .filter(({ type }) => type === 'tool_end');
    expect(asked).toMatchObject({
      kind: 'approval',
      calls: [{ tool: 'bash', arguments: '{"command":"echo made > made.txt"}' }],
    });
    expect(JSON.parse(end?.data ?? '{}')).toMatchObject({ ok: made });
    if (!made)
      expect(JSON.parse(end?.data ?? '{}').output).toBe('a person did not allow this call');
  },
);

test.each([
  ['a question', question, { question: 'red or blue?' }],
  ['a request for leave', command('touch made'), { question: expect.stringContaining('May it?') }],
])(
  '%s that nobody answers fails the attempt in time with a reason, and nothing runs',
  async (_, asking, facts) => {
    const server = await startServer({
      turns: [asking, finish()],
      options: { answerMs: 50 },
      role: { approvals: ['bash'] },
    });
    const id = await running(server);

    const view = await untilStatus(server, id, 'failed');

    expect(view.error).toMatchObject({
      code: 'timed_out',
      message: expect.stringContaining('nobody answered'),
      facts,
    });
    expect(existsSync(join(server.root, 'made'))).toBe(false);
  },
);

test('calls that nobody approves in time are not made, and the agent continues', async () => {
  const server = await startServer({
    turns: [command('touch made'), finish('without')],
    options: { answerMs: 50, defaultDecision: 'deny' },
    role: { approvals: ['bash'] },
  });
  const id = await running(server);
  const asked = await untilAsked(server, id, 'approval_required');

  const view = await untilStatus(server, id, 'complete');

  const end = server.store
    .read({ taskId: id, after: 0, limit: 100 })
    .find(({ type }) => type === 'tool_end');
  expect(asked).toMatchObject({ default_answer: 'deny' });
  expect(JSON.parse(end?.data ?? '{}')).toMatchObject({
    ok: false,
    output: 'nobody allowed this call within 0 s',
  });
  expect(view.result).toBe('without');
  expect(existsSync(join(server.root, 'made'))).toBe(false);
});

test('the default answer reaches the model, marked as such', async () => {
  const heard: string[] = [];
  const turns = [question, finish('by myself')];
  const server = await startServer({
    options: { answerMs: 50, defaultAnswer: 'Decide by yourself.' },
    model: hearing(turns, heard),
  });
  const id = await running(server);
  const asked = await untilAsked(server, id, 'input_required');

  await untilStatus(server, id, 'complete');

  expect(asked).toMatchObject({ default_answer: 'Decide by yourself.' });
  expect(heard.at(-1)).toBe(
    'Nobody answered in time. This counts as the answer:\n\nDecide by yourself.',
  );
});

test('an answer to an ended attempt does not reach the next one with the same question', async () => {
  const server = await startServer({ turns: [question, finish('so it is')] });
  const id = await running(server);
  await untilAsked(server, id, 'input_required');
  await server.call('cancel', { task_id: id });
  await server.call('retry', { task_id: id });
  await vi.waitFor(async () =>
    expect((await server.call('status', { task_id: id })).result).toMatchObject({
      attempt: 2,
      awaiting: { input_id: 'input-1' },
    }),
  );
  const respond = (attempt: number) =>
    server.call('respond', { task_id: id, attempt, input_id: 'input-1', text: 'blue' });

  const { error } = await respond(1);
  const still = (await server.call('status', { task_id: id })).result;
  await respond(2);

  expect(error).toMatchObject({
    code: -32019,
    data: { code: 'stale_attempt', attempt: 1, live_attempt: 2 },
  });
  expect(still).toMatchObject({ phase: 'awaiting_input', attempt: 2 });
  expect(await untilStatus(server, id, 'complete')).toMatchObject({
    attempt: 2,
    result: 'so it is',
  });
});

test('a task that waits for a person can be cancelled', async () => {
  const server = await startServer({ turns: [question] });
  const id = await running(server);
  await untilAsked(server, id, 'input_required');

  expect((await server.call('cancel', { task_id: id })).result.status).toBe('cancelled');
});

test.each([
  [
    'an attempt that is not live',
    { attempt: 7, input_id: 'input-1', text: 'x' },
    'stale_attempt',
    { live_attempt: 1 },
  ],
  ['another question', { attempt: 1, input_id: 'input-9', text: 'x' }, 'invalid_params', {}],
  [
    'a question in words, with a decision',
    { attempt: 1, input_id: 'input-1', decision: 'allow' },
    'invalid_params',
    {},
  ],
  ['nothing', { attempt: 1, input_id: 'input-1' }, 'invalid_params', {}],
])('an answer to %s is refused', async (_, params, code, facts) => {
  const server = await startServer({ turns: [question] });
  const id = await running(server);
  await untilAsked(server, id, 'input_required');

  const { error } = await server.call('respond', { task_id: id, ...params });

  expect(error.data).toMatchObject({ code, ...facts });
  expect((await server.call('status', { task_id: id })).result.phase).toBe('awaiting_input');
});

test('an answer to a task without a question names its state', async () => {
  const server = await startServer({ turns: [hang] });
  const queued = (await server.call('create', { description: 'idle' })).result.task_id;
  const busy = await running(server);
  await vi.waitFor(async () =>
    expect((await server.call('status', { task_id: busy })).result.phase).toBe('acting'),
  );
  const respond = (id: string) =>
    server.call('respond', { task_id: id, attempt: 1, input_id: 'input-1', text: 'x' });

  expect((await respond(queued)).error.data).toMatchObject({
    code: 'event_not_allowed',
    state: 'queued',
  });
  expect((await respond(busy)).error.data).toMatchObject({
    code: 'event_not_allowed',
    event: 'respond',
    state: 'started (working)',
  });
  expect((await respond('bd-none')).error.data).toMatchObject({ code: 'task_not_found' });
});

test('decisions are answered by the journal, the last one first, long texts cut', async () => {
  const server = await startServer({
    turns: [question, command('echo made'), finish()],
    role: { approvals: ['bash'] },
  });
  const id = await running(server);
  const asked = await untilAsked(server, id, 'input_required');
  const text = `blue ${'x'.repeat(400)}`;
  await server.call('respond', { task_id: id, attempt: 1, input_id: asked.input_id, text });
  const { input_id } = await untilAsked(server, id, 'approval_required');
  const denial = { decision: 'deny', text: 'not now' };
  await server.call('respond', { task_id: id, attempt: 1, input_id, ...denial });
  await untilStatus(server, id, 'complete');

  const all = (await server.call('decisions', {})).result;
  const last = (await server.call('decisions', { limit: 1 })).result;
  const refused = (await server.call('decisions', { limit: 201 })).error;

  expect(all.decisions).toEqual([
    expect.objectContaining({
      ...{ task_id: id, attempt: 1, kind: 'denied', about: 'bash echo made', said: 'not now' },
    }),
    expect.objectContaining({ task_id: id, kind: 'answered', said: `${text.slice(0, 299)}…` }),
  ]);
  expect(last.decisions).toEqual(all.decisions.slice(0, 1));
  expect(refused.data).toMatchObject({ code: 'invalid_params' });
});
