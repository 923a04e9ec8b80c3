import { expect, test } from 'vitest';
import { createOpenAiChatModel } from '../../../src/actors/model/openai-chat.ts';
import { retryAfterMs } from '../../../src/actors/model/openai-faults.ts';
import type { Timeouts } from '../../../src/actors/model/watchdog.ts';
import { aRequest, ask, describeModel } from '../../contracts/model.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';

const apiKey = 'sk-test-key-0123456789';
const call = { id: 'c1', name: 'read', arguments: '{"path":"x"}' };

const openWith = async (next: (number: number) => Answer, timeouts: Partial<Timeouts> = {}) => {
  const server = await startModelServer((_, number) => next(number));
  return { ...server, model: createOpenAiChatModel({ apiKey, baseURL: server.baseURL, timeouts }) };
};

describeModel('openai chat', async () => {
  const { model } = await openWith(() => ({ kind: 'answer', text: 'I read it.', calls: [call] }));
  return model;
});

test('the request carries model, conversation, tools and key as the wire format says', async () => {
  const { model, requests } = await openWith(() => ({ kind: 'answer', text: 'ok' }));
  const request = aRequest({
    messages: [
      { role: 'user', text: 'Do it.' },
      { role: 'assistant', text: 'I look.', calls: [{ id: 'c1', tool: 'read', arguments: '{"path":"x"}' }] },
      { role: 'tool', callId: 'c1', tool: 'read', text: 'content', ok: true },
    ],
  });

  await ask(model, request);

  expect(requests).toHaveLength(1);
  expect(requests[0]?.path).toBe('/v1/chat/completions');
  expect(requests[0]?.headers.authorization).toBe(`Bearer ${apiKey}`);
  expect(requests[0]?.body).toEqual({
    model: 'some-model',
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 1_000,
    messages: [
      { role: 'system', content: 'You are an engineer.' },
      { role: 'user', content: 'Do it.' },
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path":"x"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'content' },
    ],
    tools: [
      {
        type: 'function',
        function: { name: 'read', description: 'reads', parameters: { type: 'object', properties: {} } },
      },
    ],
  });
});

test('usage is what the provider counted, or an estimate when it did not count', async () => {
  const counted = { prompt_tokens: 5, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 2 } };
  const { model } = await openWith((number) => ({
    kind: 'answer',
    text: 'four',
    usage: number === 1 ? counted : null,
  }));

  const [first, second] = [(await ask(model)).at(-1), (await ask(model)).at(-1)];

  expect(first).toMatchObject({ usage: { inputTokens: 5, outputTokens: 3, cachedTokens: 2 } });
  expect(second).toMatchObject({ usage: { outputTokens: 1, cachedTokens: 0 } });
});

test('calls with a missing or a doubled id get ids of their own', async () => {
  const twice = [call, call, { name: 'read', arguments: '{}' }];
  const { model } = await openWith(() => ({ kind: 'answer', calls: twice }));

  const last = (await ask(model)).at(-1);

  const ids = last?.type === 'answered' ? last.calls.map(({ id }) => id) : [];
  expect(new Set(ids).size).toBe(3);
});

test('stop with tool calls counts as tool calls', async () => {
  const { model } = await openWith(() => ({ kind: 'answer', calls: [call], finish: 'stop' }));

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', calls: [{ tool: 'read' }] });
});

test('an answer that was cut at its token limit says so', async () => {
  const { model } = await openWith(() => ({
    kind: 'answer',
    calls: [{ ...call, arguments: '{"pa' }],
    finish: 'length',
  }));

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', truncated: true });
});

test('an answer that is finished counts at once, though its socket stays open', async () => {
  const { model } = await openWith(() => ({ kind: 'answer', text: 'done', hold: true }));

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', text: 'done' });
});

const short = { connectMs: 150, firstByteMs: 150, idleMs: 150, progressMs: 300, turnMs: 5_000 };
const status = (code: number, body?: unknown, headers?: Record<string, string>): Answer => ({
  kind: 'status',
  status: code,
  ...(body === undefined ? {} : { body }),
  ...(headers === undefined ? {} : { headers }),
});

test.each<[string, Answer, string, boolean]>([
  ['HTTP 500', status(500), 'http', true],
  ['HTTP 529', status(529), 'http', true],
  ['HTTP 429', status(429), 'http', true],
  ['an empty quota', status(429, { error: { message: 'x', code: 'insufficient_quota' } }), 'insufficient_quota', false],
  ['HTTP 400', status(400), 'http', false],
  ['HTTP 401', status(401, { error: { message: `Incorrect key ${apiKey}` } }), 'auth', false],
  [
    'a context that is too long',
    status(400, { error: { message: 'x', code: 'context_length_exceeded' } }),
    'context_length_exceeded',
    false,
  ],
  ['a redirect', status(307, {}, { location: 'http://127.0.0.1:9/' }), 'redirect', false],
  ['no headers', { kind: 'silence' }, 'timeout_connect', true],
  ['headers and nothing more', { kind: 'headers_only' }, 'timeout_first_byte', true],
  ['a stall after the first piece', { kind: 'stall' }, 'timeout_idle', true],
  ['comments only', { kind: 'comments_only' }, 'timeout_progress', true],
  ['a reset in mid-answer', { kind: 'reset' }, 'network', true],
  ['an end in mid-answer', { kind: 'cut' }, 'cut_off', true],
  ['half an event at the end', { kind: 'half_event' }, 'cut_off', true],
  ['a piece that is not JSON', { kind: 'bad_json' }, 'malformed', true],
  ['an error in the stream', { kind: 'error_event' }, 'stream_error', true],
  ['a web page', { kind: 'html' }, 'content_type', true],
  ['the content filter', { kind: 'answer', text: 'x', finish: 'content_filter' }, 'content_filter', false],
])('%s is a failure by name and never an answer', async (_, given, kind, retryable) => {
  const { model, requests } = await openWith(() => given, short);

  const last = (await ask(model)).at(-1);

  expect(last).toMatchObject({ type: 'failed', failure: { code: 'model_failed', facts: { kind }, retryable } });
  expect(JSON.stringify(last)).not.toContain(apiKey);
  expect(requests).toHaveLength(1);
});

test('a provider that is not there is a failure', async () => {
  const model = createOpenAiChatModel({ apiKey, baseURL: 'http://127.0.0.1:9/v1' });

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'failed', failure: { facts: { kind: 'network' } } });
});

test('a cancel in mid-answer is no success', async () => {
  const { model } = await openWith(() => ({ kind: 'stall' }));
  const stop = new AbortController();
  const events = [];
  for await (const event of model.ask(aRequest(), stop.signal)) {
    events.push(event);
    stop.abort();
  }

  expect(events.at(-1)).toMatchObject({ type: 'failed', failure: { facts: { kind: 'cancelled' }, retryable: false } });
});

test.each([
  ['6', 6_000],
  ['-5', 500],
  ['soon', 500],
  ['Thu, 01 Jan 1970 00:01:00 GMT', 60_000],
])('Retry-After %s is a pause of %d ms', (given, ms) => {
  expect(retryAfterMs(new Headers({ 'retry-after': given }), 0)).toBe(ms);
});
