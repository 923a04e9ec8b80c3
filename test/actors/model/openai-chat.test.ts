import { expect, test } from 'vitest';
import { defaultCompat } from '../../../src/actors/model/compat.ts';
import { createOpenAiChatModel } from '../../../src/actors/model/openai/openai-chat.ts';
import { aRequest, ask } from '../../contracts/model.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';

const apiKey = 'sk-test-key-0123456789';
const call = { id: 'c1', name: 'read', arguments: '{"path":"x"}' };

const openWith = async (answer: Answer) => {
  const server = await startModelServer(() => answer);
  return { ...server, model: createOpenAiChatModel({ apiKey, baseURL: server.baseURL }) };
};

test('the request has model, conversation, tools and key in the wire format', async () => {
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
  expect(requests[0]?.path).toBe('/v1/chat/completions');
  expect(requests[0]?.headers).toMatchObject({
    authorization: `Bearer ${apiKey}`,
    'idempotency-key': request.idempotencyKey,
  });
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
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path":"x"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'content' },
    ],
    tools: [
      {
        type: 'function',
        function: {
          name: 'read',
          description: 'reads',
          parameters: { type: 'object', properties: {} },
        },
      },
    ],
  });
});

test('stop with tool calls counts as tool calls', async () => {
  const { model } = await openWith({ kind: 'answer', calls: [call], finish: 'stop' });

  expect((await ask(model)).at(-1)).toMatchObject({ type: 'answered', calls: [{ tool: 'read' }] });
});

test('the token limit goes into the configured field', async () => {
  const { baseURL, requests } = await startModelServer(() => ({ kind: 'answer', text: 'ok' }));

  await ask(
    createOpenAiChatModel({
      apiKey,
      baseURL,
      compat: { ...defaultCompat, maxTokensField: 'max_completion_tokens' },
    }),
  );

  expect(requests[0]?.body).toMatchObject({ max_completion_tokens: 1_000 });
  expect(requests[0]?.body).not.toHaveProperty('max_tokens');
});

test('an empty finish reason, as some providers send with every piece, ends nothing', async () => {
  const { model } = await openWith({
    kind: 'status',
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: 'data: {"choices":[{"delta":{"content":"x"},"finish_reason":""}]}\n\n',
  });

  expect((await ask(model)).at(-1)).toMatchObject({
    type: 'failed',
    failure: { facts: { kind: 'cut_off' } },
  });
});
