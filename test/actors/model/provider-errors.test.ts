import { describe, expect, test } from 'vitest';
import { createOpenAiChatModel } from '../../../src/actors/model/openai/openai-chat.ts';
import { ask } from '../../contracts/model.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';

/** Errors as providers send them, over chat completions. */

const apiKey = 'sk-test-key-0123456789';
const now = Date.parse('2026-11-27T12:00:00Z');

const failureOf = async (answer: Answer) => {
  const { baseURL } = await startModelServer(() => answer);
  const last = (await ask(createOpenAiChatModel({ apiKey, baseURL, now: () => now }))).at(-1);
  if (last?.type !== 'failed') throw new Error('the call did not fail');
  return last.failure;
};
const status = (code: number, body?: unknown, headers: Record<string, string> = {}): Answer => ({
  kind: 'status',
  status: code,
  body,
  headers,
});
const page = (title: string): string =>
  `<!DOCTYPE html>\n<html><head><TITLE lang="en">\n${title}\n</TITLE></head><body><h1>x</h1></body></html>`;
const asHtml = { 'content-type': 'text/html' };
const asText = { 'content-type': 'text/plain' };

/** The shapes of error bodies, with the words of the provider in them. */
const shapes: readonly (readonly [name: string, body: (words: string) => unknown])[] = [
  ['OpenAI', (message) => ({ error: { message, type: 'invalid_request_error', code: null } })],
  ['Gemini', (message) => [{ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }]],
  ['vLLM', (message) => ({ object: 'error', message, type: 'BadRequestError', code: 400 })],
  ['FastAPI', (detail) => ({ detail })],
  ['FastAPI, as a list', (msg) => ({ detail: [{ loc: ['body', 0], msg, type: 'value_error' }] })],
  ['a message alone', (message) => ({ message })],
  ['Ollama', (error) => ({ error })],
  ['a list of errors', (message) => ({ errors: [{ code: 1, message }] })],
  ['plain text', (words) => words],
];

describe.each(shapes)('an error as %s', (_, body) => {
  test("it says the provider's words", async () => {
    const failure = await failureOf(status(422, body('the field stop is not allowed')));

    expect(failure).toMatchObject({ facts: { kind: 'http', status: 422 }, retryable: false });
    expect(failure.message).toMatch(
      /^the provider answered 422 (body\.0: )?the field stop is not allowed$/,
    );
  });

  test('a context that is too long is recognised', async () => {
    const words = "This model's maximum context length is 4096 tokens, you asked for 5000.";

    expect(await failureOf(status(400, body(words)))).toMatchObject({
      facts: { kind: 'context_overflow' },
      retryable: false,
    });
  });

  test('its words are short plain text without the key', async () => {
    const words = `\u001b[31mred\u001b[0m\u0000 \u202e${apiKey}\r\n\tnot allowed ${'x'.repeat(9_000)}`;

    const { message } = await failureOf(status(400, body(words)));

    expect(message).toMatch(
      /^the provider answered 400 (body\.0: )?red \[secret\] not allowed x+$/,
    );
    expect(message.length).toBeLessThanOrEqual(300);
  });

  test('its words tell the pause of a rate limit', async () => {
    expect(await failureOf(status(429, body('Please retry in 7.5s.')))).toMatchObject({
      facts: { retry_after_ms: 7_500 },
      retryable: true,
    });
  });
});

test.each([
  [
    'Gemini',
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).',
  ],
  ['xAI', "This model's maximum prompt length is 131072 but the request contains 140000 tokens."],
  ['TGI', '`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 9000 `inputs` tokens'],
  ['Cohere', 'too many tokens: total number of tokens in the prompt cannot exceed 4081'],
])('a context that is too long is recognised in the words of %s', async (_, message) => {
  expect(await failureOf(status(400, { error: { message } }))).toMatchObject({
    facts: { kind: 'context_overflow' },
  });
});

test.each<[string, Answer, string]>([
  ['its title', status(503, page('Down for maintenance'), asHtml), '503 Down for maintenance'],
  ['its title without the status', status(502, page('502 Bad Gateway'), asHtml), '502 Bad Gateway'],
  ['the status, without a title', status(502, '<html><p>x</p></html>', asHtml), '502'],
  ['the title, whatever its type', status(502, page('Bad Gateway'), asText), '502 Bad Gateway'],
  ['the status of nothing', status(500, ''), '500'],
  ['the status of an empty object', status(500, {}), '500'],
  ['the status of a deep list', status(500, `${'['.repeat(50_000)}${']'.repeat(50_000)}`), '500'],
])('an error page says %s', async (_, answer, says) => {
  expect((await failureOf(answer)).message).toBe(`the provider answered ${says}`);
});

test.each<[string, number, unknown, string, string]>([
  ['a 401', 401, 'no', 'auth', 'the provider refused the key (HTTP 401): no'],
  [
    'a 403 about the API key',
    403,
    [
      {
        error: { code: 403, message: 'Please use API Key or other form of API consumer identity.' },
      },
    ],
    'auth',
    'the provider refused the key (HTTP 403): Please use API Key or other form of API consumer identity.',
  ],
  [
    'a 403 with the code of a key',
    403,
    { error: { message: 'no', code: 'invalid_api_key' } },
    'auth',
    'the provider refused the key (HTTP 403): no',
  ],
  [
    'a 403 about authentication',
    403,
    { detail: 'Not authenticated' },
    'auth',
    'the provider refused the key (HTTP 403): Not authenticated',
  ],
  [
    'a 403 about a country',
    403,
    { error: { message: 'This model is not available in your country.' } },
    'http',
    'the provider answered 403 This model is not available in your country.',
  ],
  [
    'a 403 about a model',
    403,
    { error: { message: 'This API key has no access to model gpt-9.', code: 'model_not_found' } },
    'http',
    'the provider answered 403 This API key has no access to model gpt-9.',
  ],
  ['a 403 of a proxy', 403, page('403 Forbidden'), 'http', 'the provider answered 403 Forbidden'],
])('%s says whether the key was refused', async (_, code, body, kind, message) => {
  expect(await failureOf(status(code, body))).toMatchObject({
    facts: { kind, status: code },
    message,
    retryable: false,
  });
});

test.each<[string, object]>([
  ['as Gemini sends it', [{ error: { code: 429, message: 'slow down' } }]],
  ['as vLLM sends it', { object: 'error', message: 'slow down', code: 429 }],
])('an error in the stream is read %s', async (_, error) => {
  const failure = await failureOf({
    kind: 'status',
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: `data: ${JSON.stringify(error)}\n\n`,
  });

  expect(failure).toMatchObject({
    facts: { kind: 'stream_error', status: 429 },
    message: 'the provider reported an error: slow down',
    retryable: true,
  });
});

test.each([403, 429])('no member of an error makes a call throw: HTTP %i', async (code) => {
  const odd = { toString: 1 };
  const error = {
    ...{ message: 'no', code: odd, type: odd, loc: [odd], details: [odd] },
    metadata: { headers: { 'x-ratelimit-reset': odd } },
  };

  const [refused, ended] = [
    await failureOf(status(code, { error })),
    await failureOf({ kind: 'error_event', error }),
  ];

  expect(refused.message).toBe(`the provider answered ${code} no`);
  expect(ended.message).toBe('the provider reported an error: no');
});

const badCall = { message: 'Failed to call a function.', code: 'tool_use_failed' };
test.each<[string, Answer]>([
  ['refused', status(400, { error: { ...badCall, type: 'invalid_request_error' } })],
  [
    'ended',
    { kind: 'error_event', error: { ...badCall, type: 'invalid_request_error', status_code: 400 } },
  ],
])('a tool call that Groq cannot read may be tried again: %s', async (_, answer) => {
  expect(await failureOf(answer)).toMatchObject({
    message: 'the model wrote a tool call that the provider could not read',
    facts: { kind: 'malformed_call', provider_code: 'tool_use_failed' },
    retryable: true,
  });
});

const retryInfo = (retryDelay: unknown) => ({
  code: 429,
  message: 'Quota exceeded.',
  details: [
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure' },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
  ],
});
const inMs = (ms: number): string => String(now + ms);

test.each<[string, Answer, number | undefined]>([
  ['OpenRouter, in a header', status(429, {}, { 'X-RateLimit-Reset': inMs(42_000) }), 42_000],
  [
    'OpenRouter, in the body',
    status(429, {
      error: {
        code: 429,
        message: 'Rate limit exceeded',
        metadata: { headers: { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': inMs(42_000) } },
      },
    }),
    42_000,
  ],
  [
    'OpenRouter, in the stream',
    {
      kind: 'error_event',
      error: { code: 429, metadata: { headers: { 'x-ratelimit-reset': inMs(42_000) } } },
    },
    42_000,
  ],
  ['a reset in the past', status(429, {}, { 'x-ratelimit-reset': inMs(-1) }), 500],
  ['a reset that is no time', status(429, {}, { 'x-ratelimit-reset': '42' }), undefined],
  [
    'a reset without a rate limit',
    status(500, {}, { 'x-ratelimit-reset': inMs(42_000) }),
    undefined,
  ],
  ['Google', status(429, [{ error: retryInfo('34s') }]), 34_000],
  ['Google, with a fraction', status(429, { error: retryInfo('34.074824224s') }), 34_075],
  ['Google, in the stream', { kind: 'error_event', error: retryInfo('34s') }, 34_000],
  ['Google, unreadable', status(429, { error: retryInfo({ seconds: 34 }) }), undefined],
  [
    'Anthropic',
    status(429, undefined, {
      'anthropic-ratelimit-requests-reset': '2026-11-27T12:00:01Z',
      'anthropic-ratelimit-input-tokens-reset': '2026-11-27T12:00:30Z',
      'anthropic-ratelimit-input-tokens-remaining': '0',
    }),
    30_000,
  ],
  [
    'Anthropic, unreadable',
    status(429, undefined, { 'anthropic-ratelimit-tokens-reset': 'soon' }),
    undefined,
  ],
  [
    'Retry-After before all others',
    status(429, { error: retryInfo('34s') }, { 'retry-after': '6', 'x-ratelimit-reset': inMs(1) }),
    6_000,
  ],
])('the pause of a rate limit is read: %s', async (_, answer, pause) => {
  expect((await failureOf(answer)).facts['retry_after_ms']).toBe(pause);
});
