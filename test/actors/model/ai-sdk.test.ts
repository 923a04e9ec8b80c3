import { expect, test } from 'vitest';
import { type AiSdkOptions, createAiSdkModel } from '../../../src/actors/model/ai-sdk.ts';
import type { ModelEvent, ModelMessage, ModelUsage } from '../../../src/actors/model/port.ts';
import { aRequest, ask, describeModel } from '../../contracts/model.ts';
import { createPromptCache } from '../../model-server/native-wires.mjs';
import { type Answer, startModelServer } from '../../support/model-server.ts';

const apiKey = 'sk-test-key-0123456789';
const types = ['anthropic', 'google', 'bedrock', 'vertex'] as const;
const sealed = {
  anthropic: 'signed:Hm.',
  google: 'sealed',
  bedrock: 'signed:Hm.',
  vertex: 'sealed',
};
const call = { id: 'c1', name: 'read', arguments: '{"path":"x"}' };

const openWith = async (
  type: AiSdkOptions['type'],
  answer: Answer | ((body: Readonly<Record<string, unknown>>) => Answer),
  more: Partial<AiSdkOptions> = {},
) => {
  const server = await startModelServer(({ body }) =>
    typeof answer === 'function' ? answer(body) : answer,
  );
  const { baseURL } = server;
  return { ...server, model: createAiSdkModel({ type, apiKey, baseURL, ...more }) };
};

for (const type of types)
  describeModel(type, async () => {
    const { model } = await openWith(type, (body) =>
      JSON.stringify(body).includes('Do another.')
        ? { kind: 'answer', text: 'I wrote it.' }
        : { kind: 'answer', text: 'I read it.', calls: [call] },
    );
    return model;
  });

/** A conversation as the loop would have it after an answer. */
const goOn = async (
  { model }: Awaited<ReturnType<typeof openWith>>,
  messages: readonly ModelMessage[],
  note: (answered: Extract<ModelEvent, { type: 'answered' }>) => void = () => {},
): Promise<readonly ModelMessage[]> => {
  const last = (await ask(model, aRequest({ messages }))).at(-1);
  if (last?.type !== 'answered') throw new Error(JSON.stringify(last));
  note(last);
  const { text, calls, reasoning } = last;
  const results = calls.map(
    ({ id, tool }): ModelMessage => ({ role: 'tool', callId: id, tool, text: 'content', ok: true }),
  );
  // As after a restart.
  const kept = reasoning === undefined ? undefined : JSON.parse(JSON.stringify(reasoning));
  return [...messages, { role: 'assistant', text, calls, reasoning: kept }, ...results];
};
const first: readonly ModelMessage[] = [{ role: 'user', text: 'Do it.' }];

test.each(types)(
  '%s gets its signed thoughts back, and parallel calls with their results',
  async (type) => {
    const two = [call, { ...call, id: 'c2' }];
    const thought = { field: '', text: 'Hm.' };
    const opened = await openWith(type, { kind: 'answer', text: 'I look.', calls: two, thought });

    const after = await goOn(opened, first);
    const later = await goOn(opened, [...after, { role: 'user', text: 'Go on.' }]);

    expect(later.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'tool', 'user', 'assistant', 'tool', 'tool'],
    ]);
    expect(JSON.stringify(opened.requests[1]?.body)).toContain(`"${sealed[type]}"`);
  },
);

test('thoughts of another model stay away', async () => {
  const thought = { field: '', text: 'Hm.' };
  const opened = await openWith('anthropic', { kind: 'answer', text: 'I look.', thought });
  const messages = [...(await goOn(opened, first)), { role: 'user', text: 'Go on.' } as const];

  await ask(opened.model, aRequest({ model: 'another', messages }));

  expect(JSON.stringify(opened.requests[1]?.body)).not.toContain('Hm.');
});

test('of 30 turns of the Messages API 85 % are read from its cache, and each is a prefix of the next', async () => {
  const cache = createPromptCache();
  const opened = await openWith('anthropic', (body) => ({
    ...{ kind: 'answer', text: 'I look.', calls: [call], usage: cache.count(body) },
  }));
  let messages = first;
  const usages: ModelUsage[] = [];
  for (let turn = 0; turn < 30; turn += 1)
    messages = await goOn(opened, messages, ({ usage }) => usages.push(usage));
  const seen = opened.requests.map(({ body }) =>
    JSON.stringify(body['messages']).replaceAll(',"cache_control":{"type":"ephemeral"}', ''),
  );

  for (const [at, text] of seen.entries())
    expect(seen[at + 1] ?? text).toContain(text.slice(0, -1));
  const sum = (of: (usage: ModelUsage) => number): number =>
    usages.map(of).reduce((one, other) => one + other);
  expect(sum((usage) => usage.cachedTokens) / sum((usage) => usage.inputTokens)).toBeGreaterThan(
    0.85,
  );
});

test.each<[string, Answer, object]>([
  [
    'a limit',
    {
      ...{ kind: 'status', status: 429, headers: { 'retry-after': '7' } },
      body: { type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } },
    },
    { retryable: true, facts: { status: 429, retry_after_ms: 7_000 } },
  ],
  [
    'overload',
    {
      ...{ kind: 'status', status: 529 },
      body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    },
    { retryable: true, facts: { status: 529 } },
  ],
  ['overload in the stream', { kind: 'error_event' }, { retryable: true }],
  [
    'a refused key',
    {
      ...{ kind: 'status', status: 401 },
      body: { type: 'error', error: { type: 'authentication_error', message: apiKey } },
    },
    { retryable: false, facts: { kind: 'auth' } },
  ],
  [
    'a conversation that is too long',
    {
      ...{ kind: 'status', status: 400 },
      body: {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens' },
      },
    },
    { retryable: false, facts: { kind: 'context_overflow' } },
  ],
  [
    'no credit',
    {
      ...{ kind: 'status', status: 400 },
      body: {
        type: 'error',
        error: { type: 'billing_error', message: 'Your credit balance is too low' },
      },
    },
    { retryable: false, facts: { kind: 'insufficient_quota' } },
  ],
  ['a cut answer', { kind: 'cut' }, { retryable: true }],
  ['half an event', { kind: 'half_event' }, { retryable: true }],
  ['a reset', { kind: 'reset' }, { retryable: true, facts: { kind: 'network' } }],
  ['no JSON', { kind: 'bad_json' }, { retryable: true }],
  ['a web page', { kind: 'html' }, { retryable: true, facts: { kind: 'content_type' } }],
  [
    'a filtered answer',
    { kind: 'answer', finish: 'content_filter' },
    { facts: { kind: 'content_filter' } },
  ],
])('%s fails the call by its name', async (_, answer, failure) => {
  const { model } = await openWith('anthropic', answer);

  const events = await ask(model);

  expect(events.at(-1)).toMatchObject({ type: 'failed', failure });
  expect(JSON.stringify(events)).not.toContain(apiKey);
});

test('a server that nothing listens at is told by its address', async () => {
  const { model, close, origin } = await openWith('anthropic', { kind: 'html' });
  await close();

  expect((await ask(model)).at(-1)).toMatchObject({
    failure: { message: `the provider at ${origin} refused the connection: nothing listens there` },
  });
});

test('an answer at the limit of tokens is told as cut', async () => {
  const { model } = await openWith('anthropic', { kind: 'answer', text: 'I', finish: 'length' });

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', truncated: true });
});
