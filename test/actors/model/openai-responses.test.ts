import { expect, onTestFinished, test, vi } from 'vitest';
import { createOpenAiResponsesModel } from '../../../src/actors/model/openai/openai-responses.ts';
import { aRequest, ask } from '../../contracts/model.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';

const apiKey = 'sk-test-key-0123456789';

const openWith = async (answer: Answer) => {
  const server = await startModelServer(() => answer);
  return { ...server, model: createOpenAiResponsesModel({ apiKey, baseURL: server.baseURL }) };
};

test('the request has model, conversation, tools and key in the wire format, and nothing is stored', async () => {
  const { model, requests } = await openWith({ kind: 'answer', text: 'ok' });
  const request = aRequest({
    messages: [
      { role: 'user', text: 'Do it.' },
      {
        role: 'assistant',
        text: 'I look.',
        calls: [{ id: 'c1', tool: 'read', arguments: '{"path":"x"}' }],
      },
      { role: 'tool', callId: 'c1', tool: 'read', text: 'content', ok: true },
    ],
  });

  await ask(model, request);

  expect(requests).toHaveLength(1);
  expect(requests[0]?.path).toBe('/v1/responses');
  expect(requests[0]?.headers.authorization).toBe(`Bearer ${apiKey}`);
  expect(requests[0]?.body).toEqual({
    model: 'some-model',
    stream: true,
    store: false,
    instructions: 'You are an engineer.',
    max_output_tokens: 1_000,
    input: [
      { type: 'message', role: 'user', content: 'Do it.' },
      {
        type: 'message',
        role: 'assistant',
        id: 'msg_1',
        status: 'completed',
        content: [{ type: 'output_text', text: 'I look.', annotations: [] }],
      },
      { type: 'function_call', call_id: 'c1', name: 'read', arguments: '{"path":"x"}' },
      { type: 'function_call_output', call_id: 'c1', output: 'content' },
    ],
    tools: [
      {
        type: 'function',
        name: 'read',
        description: 'reads',
        parameters: { type: 'object', properties: {} },
        strict: false,
      },
    ],
  });
});

test.each<[string, Answer, string, boolean]>([
  ['a flat error', { kind: 'error_event', as: 'flat' }, 'stream_error', true],
  [
    'a flat error that names the key',
    { kind: 'error_event', as: 'flat', error: { message: `used ${apiKey}`, code: null } },
    'stream_error',
    true,
  ],
  [
    'a flat error of the quota',
    { kind: 'error_event', as: 'flat', error: { message: 'x', code: 'insufficient_quota' } },
    'insufficient_quota',
    false,
  ],
  ['a failed response', { kind: 'error_event', as: 'failed' }, 'stream_error', true],
  [
    'a failed response whose prompt is refused',
    { kind: 'error_event', as: 'failed', error: { message: 'x', code: 'invalid_prompt' } },
    'stream_error',
    false,
  ],
])('%s is a failure by name', async (_, given, kind, retryable) => {
  const { model } = await openWith(given);

  const last = (await ask(model)).at(-1);

  expect(last).toMatchObject({
    type: 'failed',
    failure: { code: 'model_failed', facts: { kind }, retryable },
  });
  expect(JSON.stringify(last)).not.toContain(apiKey);
});

test('a response may think for five minutes without a byte', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { model } = await openWith({ kind: 'stall' });
  const events = model.ask(aRequest(), new AbortController().signal)[Symbol.asyncIterator]();
  await events.next();

  const last = events.next();
  await vi.advanceTimersByTimeAsync(300_000);

  expect((await last).value).toMatchObject({
    failure: { facts: { kind: 'timeout_idle', timeout_ms: 300_000 } },
  });
});
