import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createOpenAiChatModel } from '../../../src/actors/model/openai/openai-chat.ts';
import { retryAfterMs } from '../../../src/actors/model/openai/openai-faults.ts';
import { createOpenAiResponsesModel } from '../../../src/actors/model/openai/openai-responses.ts';
import type { Timeouts } from '../../../src/actors/model/watchdog.ts';
import { aRequest, ask, describeModel } from '../../contracts/model.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';

const apiKey = 'sk-test-key-0123456789';
const call = { id: 'c1', name: 'read', arguments: '{"path":"x"}' };

/** Only the limit that is to pass is short: on a busy machine any other would pass too. */
const limits: Readonly<Record<string, Partial<Timeouts>>> = {
  timeout_connect: { connectMs: 150 },
  timeout_first_byte: { firstByteMs: 150 },
  timeout_idle: { idleMs: 150 },
  timeout_progress: { progressMs: 300 },
};

const status = (code: number, body?: unknown, headers?: Record<string, string>): Answer => ({
  kind: 'status',
  status: code,
  ...(body === undefined ? {} : { body }),
  ...(headers === undefined ? {} : { headers }),
});

const inStream = (error: Readonly<Record<string, unknown>>): Answer => ({
  kind: 'error_event',
  error,
});

const faults: readonly (readonly [
  name: string,
  answer: Answer,
  kind: string,
  retryable: boolean,
])[] = [
  ['HTTP 500', status(500), 'http', true],
  ['HTTP 529', status(529), 'http', true],
  ['HTTP 429', status(429), 'http', true],
  [
    'an empty quota',
    status(429, { error: { message: 'x', code: 'insufficient_quota' } }),
    'insufficient_quota',
    false,
  ],
  ['HTTP 400', status(400), 'http', false],
  ['HTTP 401', status(401, { error: { message: `Incorrect key ${apiKey}` } }), 'auth', false],
  [
    'a context that is too long',
    status(400, { error: { message: 'x', code: 'context_length_exceeded' } }),
    'context_overflow',
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
  ['an answer without a piece', { kind: 'empty' }, 'empty', true],
  [
    'a whole answer that never says so',
    { kind: 'answer', text: 'x', finish: null },
    'cut_off',
    true,
  ],
  [
    'an ending that nobody knows',
    { kind: 'answer', text: 'x', finish: 'error' },
    'unknown_finish',
    true,
  ],
  ['HTTP 408', status(408), 'http', true],
  ['HTTP 409', status(409), 'http', true],
  ['HTTP 404', status(404), 'http', false],
  ['HTTP 403', status(403), 'http', false],
  [
    'a key that is echoed',
    status(400, { error: { message: `bad header Bearer ${apiKey}` } }),
    'http',
    false,
  ],
  ['a key that is echoed in plain text', status(502, `upstream got ${apiKey}`), 'http', true],
  [
    'a key that is echoed in the stream',
    inStream({ message: `used ${apiKey}` }),
    'stream_error',
    true,
  ],
  [
    'a code that is the name of a method',
    status(400, { error: { message: 'x', code: 'constructor' } }),
    'http',
    false,
  ],
  ['a refused key in the stream', inStream({ message: 'x', code: 401 }), 'auth', false],
  ['a rate limit in the stream', inStream({ message: 'x', code: 429 }), 'stream_error', true],
  [
    'a bad request in the stream',
    inStream({ message: 'x', type: 'invalid_request_error' }),
    'stream_error',
    false,
  ],
  [
    'an empty quota in the stream',
    inStream({ message: 'x', code: 'insufficient_quota' }),
    'insufficient_quota',
    false,
  ],
  [
    'an empty quota by type',
    status(429, { error: { message: 'x', type: 'insufficient_quota' } }),
    'insufficient_quota',
    false,
  ],
  [
    'a filter before the answer',
    status(400, { error: { message: 'x', code: 'content_filter' } }),
    'content_filter',
    false,
  ],
  [
    'the content filter',
    { kind: 'answer', text: 'x', finish: 'content_filter' },
    'content_filter',
    false,
  ],
];

describe.each([
  { protocol: 'chat', create: createOpenAiChatModel, path: '/chat/completions' },
  { protocol: 'responses', create: createOpenAiResponsesModel, path: '/responses' },
])('$protocol', ({ protocol, create, path }) => {
  const openWith = async (next: (number: number) => Answer, timeouts: Partial<Timeouts> = {}) => {
    const server = await startModelServer((_, number) => next(number));
    return { ...server, model: create({ apiKey, baseURL: server.baseURL, timeouts }) };
  };

  describeModel(`openai ${protocol}`, async () => {
    const { baseURL } = await startModelServer(({ body }) =>
      JSON.stringify(body).includes('Do another.')
        ? { kind: 'answer', text: 'I wrote it.' }
        : { kind: 'answer', text: 'I read it.', calls: [call] },
    );
    return create({ apiKey, baseURL });
  });

  test("usage is the provider's count, or an estimate without one", async () => {
    const counted = {
      prompt_tokens: 5,
      completion_tokens: 3,
      prompt_tokens_details: { cached_tokens: 2 },
    };
    const { model } = await openWith((number) => ({
      kind: 'answer',
      text: 'four',
      usage: number === 1 ? counted : null,
    }));

    const [first, second] = [(await ask(model)).at(-1), (await ask(model)).at(-1)];

    expect(first).toMatchObject({ usage: { inputTokens: 5, outputTokens: 3, cachedTokens: 2 } });
    expect(second).toMatchObject({ usage: { outputTokens: 1, cachedTokens: 0 } });
  });

  test.each<[string, Answer, boolean]>([
    ['was cut in mid-answer costs what it had, by an estimate', { kind: 'cut' }, true],
    ['stalled after the first piece costs the same', { kind: 'stall' }, true],
    ['was refused costs nothing', status(403), false],
    ['was limited costs nothing', status(429), false],
  ])('a call that %s', async (_, answer, isCharged) => {
    const { model } = await openWith(() => answer, { idleMs: 50 });

    const last = (await ask(model)).at(-1);

    const usage = last?.type === 'failed' ? last.usage : undefined;
    expect((usage?.inputTokens ?? 0) > 0).toBe(isCharged);
  });

  test('calls with a missing or a doubled id get ids of their own', async () => {
    const twice = [call, call, { name: 'read', arguments: '{}' }];
    const { model } = await openWith(() => ({ kind: 'answer', calls: twice }));

    const last = (await ask(model)).at(-1);

    const ids = last?.type === 'answered' ? last.calls.map(({ id }) => id) : [];
    expect(new Set(ids).size).toBe(3);
  });

  test('an answer that was cut at its token limit says so', async () => {
    const { model } = await openWith(() => ({
      kind: 'answer',
      calls: [{ ...call, arguments: '{"pa' }],
      finish: 'length',
    }));

    expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', truncated: true });
  });

  test.each([
    ['with its usage', {}],
    ['without usage', { usage: null }],
  ])('a finished answer counts although its socket stays open, %s', async (_, over) => {
    const { model } = await openWith(() => ({ kind: 'answer', text: 'done', hold: true, ...over }));

    expect((await ask(model)).at(-1)).toMatchObject({
      type: 'answered',
      text: 'done',
      truncated: false,
    });
  });

  test('a finished answer counts when a limit passes during the wait for usage', async () => {
    const { model } = await openWith(
      () => ({ kind: 'answer', text: 'done', hold: true, usage: null }),
      limits['timeout_idle'],
    );

    expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', text: 'done' });
  });

  test.each([
    ['with the path of a proxy', '/proxy/openai/v1'],
    ['with a slash at its end', '/proxy/openai/v1/'],
  ])('a base URL %s is kept', async (_, prefix) => {
    const { origin, requests } = await startModelServer(() => ({ kind: 'answer', text: 'ok' }));

    await ask(create({ apiKey, baseURL: `${origin}${prefix}` }));

    expect(requests.map((request) => request.path)).toEqual([`/proxy/openai/v1${path}`]);
  });

  test('the model is named after the host alone, not the rest of the base URL', () => {
    expect(create({ apiKey, baseURL: 'https://api.openai.com/v1' }).name).toBe('api.openai.com');
    expect(create({ apiKey, baseURL: 'http://me:secret@proxy:4000/v1' }).name).toBe('proxy:4000');
  });

  test('no redirect is followed with the key', async () => {
    const target = await startModelServer(() => ({ kind: 'answer', text: 'stolen' }));
    const location = `${target.baseURL}${path}`;
    const { model } = await openWith(() => ({
      kind: 'status',
      status: 307,
      body: {},
      headers: { location },
    }));

    const last = (await ask(model)).at(-1);

    expect(last).toMatchObject({
      type: 'failed',
      failure: { facts: { kind: 'redirect' }, retryable: false },
    });
    expect(target.requests).toEqual([]);
  });

  test.each(faults)(
    '%s is a named failure and never an answer',
    async (_, given, kind, retryable) => {
      const { model, requests } = await openWith(() => given, limits[kind]);

      const last = (await ask(model)).at(-1);

      expect(last).toMatchObject({
        type: 'failed',
        failure: { code: 'model_failed', facts: { kind }, retryable },
      });
      expect(JSON.stringify(last)).not.toContain(apiKey);
      expect(requests).toHaveLength(1);
    },
  );

  test('an unreachable provider is a failure', async () => {
    const model = create({ apiKey, baseURL: 'http://127.0.0.1:9/v1' });

    expect((await ask(model)).at(-1)).toMatchObject({
      type: 'failed',
      failure: { facts: { kind: 'network' } },
    });
  });

  test.each([
    ['before the headers', 'silence'],
    ['after the headers', 'headers_only'],
    ['during a stall', 'stall'],
  ] as const)('a cancel %s ends the call, whatever the provider does', async (_, kind) => {
    const stop = new AbortController();
    const { baseURL } = await startModelServer(() => {
      setImmediate(() => stop.abort());
      return { kind };
    });

    const last = (await ask(create({ apiKey, baseURL }), aRequest(), stop.signal)).at(-1);

    expect(last).toMatchObject({
      type: 'failed',
      failure: { facts: { kind: 'cancelled' }, retryable: false },
    });
  });

  test('an endless answer is stopped at the limit of the turn', async () => {
    const { model } = await openWith(() => ({ kind: 'comments_only' }), { turnMs: 200 });

    expect((await ask(model)).at(-1)).toMatchObject({
      failure: { facts: { kind: 'timeout_turn', timeout_ms: 200 }, retryable: true },
    });
  });

  test('the pause that a busy provider asks for is a fact of the failure', async () => {
    const { model } = await openWith(() => status(429, undefined, { 'retry-after': '6' }));

    expect((await ask(model)).at(-1)).toMatchObject({
      failure: { facts: { status: 429, retry_after_ms: 6_000 } },
    });
  });

  test.each([
    ['Rate limit reached on requests per day (RPD). Please try again in 7m12s. Visit', 432_000],
    ['Please try again in 1h0m2.5s.', 3_602_500],
    ['You exceeded your current quota. Please retry in 34.07s.', 34_070],
    ['Please try again in 6ms.', 500],
    ['Please try again in 5 minutes.', undefined],
    ['Request too large: reduce the input.', undefined],
  ])('without Retry-After the words of a 429 tell the pause: %s', async (message, pause) => {
    const { model } = await openWith(() =>
      status(429, { error: { message, code: 'rate_limit_exceeded' } }),
    );

    const last = (await ask(model)).at(-1);

    expect(last?.type === 'failed' ? last.failure.facts['retry_after_ms'] : null).toBe(pause);
  });

  test('a long error page of a proxy does not become a long message', async () => {
    const { model } = await openWith(() => status(502, 'x'.repeat(100_000)));

    const last = (await ask(model)).at(-1);

    expect(last?.type === 'failed' ? last.failure.message.length : Number.NaN).toBeLessThan(500);
  });

  test('settings of the SDK in the environment cannot make a call throw', async () => {
    vi.stubEnv('OPENAI_CUSTOM_HEADERS', 'not a header name: x');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const { model } = await openWith(() => ({ kind: 'answer', text: 'ok' }));

    expect((await ask(model)).at(-1)).toMatchObject({
      failure: { code: 'model_failed', facts: { kind: 'setup' }, retryable: false },
    });
  });

  test('a key that no header can hold is not a network fault, and is not shown', async () => {
    const { baseURL } = await startModelServer(() => ({ kind: 'answer', text: 'ok' }));

    const last = (await ask(create({ apiKey: '“smart-quoted-key”', baseURL }))).at(-1);

    expect(last).toMatchObject({ failure: { facts: { kind: 'setup' }, retryable: false } });
    expect(JSON.stringify(last)).not.toContain('smart-quoted-key');
  });
});

test.each([
  ['6', 6_000],
  ['-5', 500],
  ['soon', 500],
  ['Thu, 01 Jan 1970 00:01:00 GMT', 60_000],
])('Retry-After %s is a pause of %d ms', (given, ms) => {
  expect(retryAfterMs(new Headers({ 'retry-after': given }), 0)).toBe(ms);
});
