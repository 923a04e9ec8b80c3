import { describe, expect, test } from 'vitest';
import { defaultCompat } from '../../../src/actors/model/compat.ts';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import type { ModelMessage } from '../../../src/actors/model/port.ts';
import { probeModel } from '../../../src/actors/model/probe.ts';
import { reasoningSchema } from '../../../src/actors/model/reasoning.ts';
import { aRequest, ask } from '../../contracts/model.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';

/** Answers over chat completions as providers send them, where these differ from OpenAI. */

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const done = 'data: [DONE]\n\n';
const streamed = (...frames: readonly string[]): Answer => ({
  kind: 'status',
  status: 200,
  headers: { 'content-type': 'text/event-stream' },
  body: frames.join(''),
});
const json = (body: unknown, type = 'application/json'): Answer => ({
  kind: 'status',
  status: 200,
  headers: { 'content-type': type },
  body,
});

const chunk = (delta: object, finish: string | null = null, more: object = {}): string =>
  event({ choices: [{ index: 0, delta, finish_reason: finish }], ...more });
const calling = (...parts: readonly object[]): string => chunk({ tool_calls: parts });
const end = `${chunk({}, 'tool_calls')}${done}`;

const openWith = async (answer: Answer) => {
  const server = await startModelServer(() => answer);
  const options = { protocol: 'chat', apiKey: 'sk-test-key-0123456789' } as const;
  return { ...server, model: createOpenAiModel({ ...options, baseURL: server.baseURL }) };
};
const answerTo = async (answer: Answer) => (await ask((await openWith(answer)).model)).at(-1);
const callsIn = async (...frames: readonly string[]) => {
  const last = await answerTo(streamed(...frames));
  return last?.type === 'answered' ? last.calls : last;
};

const fn = (name: string | undefined, args: string | undefined) => ({
  function: { name, arguments: args },
});
const whole = (
  id: string | undefined,
  name: string,
  args = '{}',
  index: number | undefined = 0,
) => ({
  index,
  id,
  type: 'function',
  ...fn(name, args),
});

describe('calls', () => {
  test.each<[string, string | undefined, number | undefined]>([
    ['with its id', 'a', 0],
    ['without an id', undefined, 0],
    ['without an index', 'a', undefined],
    ['without either', undefined, undefined],
  ])('a name that comes with each piece counts once, %s', async (_, id, index) => {
    const pieces = ['{"path":', '"x', '{}"}', ''].map((args) =>
      calling(whole(id, 'write', args, index)),
    );

    expect(await callsIn(...pieces, end)).toEqual([
      { id: expect.stringMatching(/./), tool: 'write', arguments: '{"path":"x{}"}' },
    ]);
  });

  const two = [
    { id: 'a', tool: 'read', arguments: '{"path":"x"}' },
    { id: 'b', tool: 'read', arguments: '{"path":"y"}' },
  ];

  test.each([
    ['all of index 0', 0],
    ['without an index', undefined],
  ])('pieces of several calls go to the call of their id, %s', async (_, index) => {
    const rest = (id: string, args: string) => ({ index, id, ...fn(undefined, args) });

    const calls = await callsIn(
      calling(whole('a', 'read', '', index), whole('b', 'read', '', index)),
      calling(rest('a', '{"path":'), rest('b', '{"path":')),
      calling(rest('b', '"y"}'), rest('a', '"x"}')),
      end,
    );

    expect(calls).toEqual(two);
  });

  test.each<[string, number | undefined, readonly (string | undefined)[]]>([
    ['index 0', 0, ['a', 'b']],
    ['no index', undefined, ['a', 'b']],
    ['index 0 and an empty id', 0, ['', '']],
    ['neither index nor id', undefined, [undefined, undefined]],
  ])('whole calls stay apart in one chunk and in several, with %s', async (_, index, ids) => {
    const [one, other] = [
      whole(ids[0], 'read', '{"path":"x"}', index),
      whole(ids[1], 'read', '{"path":"y"}', index),
    ];
    const expected = two.map((call, at) => ({ ...call, id: ids[at] || expect.any(String) }));

    expect(await callsIn(calling(one, other), end)).toEqual(expected);
    expect(await callsIn(calling(one), calling(other), end)).toEqual(expected);
  });

  test('calls of different tools stay apart although nothing else tells them apart', async () => {
    const calls = await callsIn(
      calling(whole(undefined, 'list', '')),
      calling(whole(undefined, 'read', '{"path":"x"}')),
      end,
    );

    expect(calls).toMatchObject([
      { tool: 'list', arguments: '' },
      { tool: 'read', arguments: '{"path":"x"}' },
    ]);
  });
});

describe('an end without a finish reason', () => {
  test.each<[string, string, object]>([
    ['a whole call', calling(whole('a', 'read')), { type: 'answered', calls: [{ tool: 'read' }] }],
    ['a whole text', chunk({ content: 'yes' }), { type: 'answered', text: 'yes' }],
  ])('%s counts after [DONE], and is cut off without it', async (_, frame, expected) => {
    expect(await answerTo(streamed(frame, done))).toMatchObject({ ...expected, truncated: false });
    expect(await answerTo(streamed(frame))).toMatchObject({
      failure: { facts: { kind: 'cut_off' } },
    });
  });

  test.each([
    ['half of the arguments', [calling(whole('a', 'read', '{"path":'))]],
    [
      'half of the arguments of one of two calls',
      [calling(whole('a', 'read'), whole('b', 'read', '{"path":', 1))],
    ],
    [
      'text and a call without arguments',
      [chunk({ content: 'x' }), calling(whole('a', 'read', ''))],
    ],
    ['thoughts alone', [chunk({ reasoning_content: 'hm' })]],
  ])('%s is cut off, even with [DONE]', async (_, frames) => {
    expect(await answerTo(streamed(...frames, done))).toMatchObject({
      failure: { facts: { kind: 'cut_off' } },
    });
  });
});

describe('one JSON answer in place of a stream', () => {
  const { index: _, ...call } = whole('a', 'read', '{"path":"x"}');
  const completion = (message: object, finish = 'stop') => ({
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
    usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
  });

  test('it is read with its text, calls, thoughts and usage', async () => {
    const { model } = await openWith(
      json(
        completion({ content: 'I look.', tool_calls: [call, call], reasoning_content: 'hm' }),
        'application/json; charset=utf-8',
      ),
    );

    const [text, last] = await ask(model);

    expect(text).toEqual({ type: 'text', delta: 'I look.' });
    expect(last).toEqual({
      type: 'answered',
      text: 'I look.',
      calls: [
        { id: 'a', tool: 'read', arguments: '{"path":"x"}' },
        { id: expect.not.stringMatching(/^a$/), tool: 'read', arguments: '{"path":"x"}' },
      ],
      truncated: false,
      usage: { inputTokens: 5, outputTokens: 3, cachedTokens: 0, cacheWriteTokens: 0 },
      estimated: false,
      reasoning: {
        model: 'some-model',
        thinking: { protocol: 'chat', field: 'reasoning_content', text: 'hm' },
      },
    });
  });

  test('one that was cut at its token limit says so', async () => {
    expect(await answerTo(json(completion({ content: 'x' }, 'length')))).toMatchObject({
      type: 'answered',
      truncated: true,
    });
  });

  test.each<[string, Answer, object]>([
    [
      'an error with a good status',
      json({ error: { message: 'overloaded', code: 503 } }),
      { message: 'the provider reported an error: overloaded', retryable: true },
    ],
    ['another JSON', json({ ok: true }), { facts: { kind: 'content_type' } }],
    ['a text that is not JSON', json('nonsense'), { facts: { kind: 'malformed' } }],
    ['a web page', { kind: 'html' }, { facts: { kind: 'content_type' } }],
    [
      'more than fits',
      json(completion({ content: 'x'.repeat(9 * 1024 ** 2) })),
      { facts: { kind: 'flood' } },
    ],
  ])('%s is a failure', async (_, answer, failure) => {
    expect(await answerTo(answer)).toMatchObject({ type: 'failed', failure });
  });
});

test('usage of Groq is read where Groq puts it', async () => {
  const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };

  const last = await answerTo(
    streamed(chunk({ content: 'x' }), chunk({}, 'stop', { x_groq: { usage } }), done),
  );

  expect(last).toMatchObject({
    usage: { inputTokens: 5, outputTokens: 3, cachedTokens: 0, cacheWriteTokens: 0 },
    estimated: false,
  });
});

describe('what a provider adds to a call', () => {
  const signature = { google: { thought_signature: 'c2lnbmF0dXJl' } };
  const signed = { ...whole('a', 'read'), extra_content: signature };

  /** The assistant message that a later request holds, over the JSON of a journal. */
  const sentBack = async (answer: Answer, modelName = 'some-model') => {
    const { model, requests } = await openWith(answer);
    const last = (await ask(model)).at(-1);
    if (last?.type !== 'answered') throw new Error('no answer');
    const saved = JSON.parse(JSON.stringify(last.reasoning));
    const messages: readonly ModelMessage[] = [
      { role: 'user', text: 'Do it.' },
      {
        role: 'assistant',
        text: last.text,
        calls: last.calls,
        reasoning: reasoningSchema.optional().parse(saved),
      },
    ];
    await ask(model, aRequest({ model: modelName, messages }));
    return (requests[1]?.body['messages'] as readonly unknown[] | undefined)?.[2];
  };
  const call = (id: unknown) => ({
    id,
    type: 'function',
    function: { name: 'read', arguments: '{}' },
  });

  test('goes back with that call, to the same model only', async () => {
    const answer = streamed(calling(signed, whole('b', 'read')), end);
    const [plain, own] = [[call('a'), call('b')], { extra_content: signature }];

    expect(await sentBack(answer)).toEqual({
      role: 'assistant',
      content: '',
      tool_calls: [{ ...call('a'), ...own }, call('b')],
    });
    expect(await sentBack(answer, 'another')).toMatchObject({ tool_calls: plain });
    expect(JSON.stringify(await sentBack(answer, 'another'))).not.toContain('c2lnbmF0dXJl');
  });

  test('goes back beside thoughts, from a later piece, and with an id that we gave', async () => {
    const begun = whole(undefined, 'read', '');
    const { id: _, ...rest } = { ...signed, ...fn(undefined, '{}'), vendor: [1] };

    const message = await sentBack(
      streamed(chunk({ reasoning_content: 'hm' }), calling(begun), calling(rest), end),
    );

    expect(message).toEqual({
      role: 'assistant',
      content: '',
      reasoning_content: 'hm',
      tool_calls: [{ ...call(expect.any(String)), extra_content: signature, vendor: [1] }],
    });
  });

  test('an answer with nothing added has no reasoning', async () => {
    expect(await answerTo(streamed(calling(whole('a', 'read')), end))).not.toHaveProperty(
      'reasoning.thinking',
    );
  });

  test('thoughts as they were saved before are still read', () => {
    const saved = {
      model: 'm',
      thinking: { protocol: 'chat', field: 'reasoning_content', text: 'hm' },
    };

    expect(reasoningSchema.parse(saved)).toEqual(saved);
  });
});

test.each([
  ['chat', '/deployments/d', '/deployments/d/chat/completions'],
  ['chat', '/deployments/d/', '/deployments/d/chat/completions'],
  ['responses', '/v1', '/v1/responses'],
] as const)('the query of a base URL is kept, over %s at %s', async (protocol, path, asked) => {
  const { origin, requests } = await startModelServer(() => ({ kind: 'answer', text: 'ok' }));
  const baseURL = `${origin}${path}?api-version=2024-10-21`;

  await ask(createOpenAiModel({ protocol, apiKey: 'sk-test-key-0123456789', baseURL }));

  expect(requests.map((request) => request.path)).toEqual([`${asked}?api-version=2024-10-21`]);
});

test('a probe keeps the query of a base URL, and what the provider added to a call', async () => {
  const added = { extra_content: { google: { thought_signature: 'c2lnbmF0dXJl' } } };
  const note = { ...whole('a', 'note', '{"text":"ready"}'), ...added };
  const { origin, requests } = await startModelServer(({ path }) =>
    path.startsWith('/v1/models')
      ? json({ data: [{ id: 'm', owned_by: 'llamacpp' }] })
      : streamed(calling(note), end),
  );

  await probeModel({
    apiKey: 'sk-test-key-0123456789',
    baseURL: `${origin}/v1/?key=1`,
    model: 'm',
    protocol: 'chat',
    compat: defaultCompat,
  });

  expect(requests.map((request) => request.path)).toEqual([
    '/v1/models?key=1',
    '/props?key=1',
    '/v1/chat/completions?key=1',
    '/v1/chat/completions?key=1',
  ]);
  expect(requests.at(-1)?.body['messages']).toMatchObject({ 2: { tool_calls: { 0: added } } });
});
