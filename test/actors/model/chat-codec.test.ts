import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { describe, expect, test } from 'vitest';
import { type Compat, defaultCompat } from '../../../src/actors/model/compat.ts';
import {
  createChatAssembly,
  encodeChatRequest,
} from '../../../src/actors/model/openai/openai-chat.ts';
import { aRequest } from '../../contracts/model.ts';

/** A chunk as it comes from the wire: the SDK's type promises more than providers send. */
const wire = (chunk: object): ChatCompletionChunk => JSON.parse(JSON.stringify(chunk));
const delta = (value: object, finish: string | null = null) =>
  wire({ choices: [{ index: 0, delta: value, finish_reason: finish }] });
const part = (index: number, given: { id?: string; name?: string; arguments?: string }) => {
  const { id, ...fn } = given;
  return { index, ...(id === undefined ? {} : { id }), function: fn };
};
const assembled = (...chunks: readonly ChatCompletionChunk[]) => {
  const assembly = createChatAssembly(defaultCompat);
  for (const chunk of chunks) assembly.add(chunk);
  return assembly;
};

describe('a request', () => {
  test('leaves out what would be empty', () => {
    const body = encodeChatRequest(
      aRequest({ tools: [], messages: [{ role: 'assistant', text: 'Hm.', calls: [] }] }),
      defaultCompat,
      'localhost',
    );

    expect(body).not.toHaveProperty('tools');
    expect(body.messages[1]).toEqual({ role: 'assistant', content: 'Hm.' });
  });

  test('holds one field for the token limit', () => {
    expect(encodeChatRequest(aRequest(), defaultCompat, 'localhost')).toMatchObject({
      max_tokens: 1_000,
    });
    expect(encodeChatRequest(aRequest(), defaultCompat, 'api.openai.com')).not.toHaveProperty(
      'max_tokens',
    );
  });

  const history = aRequest({
    messages: [
      { role: 'user', text: 'Do it.' },
      { role: 'assistant', text: '', calls: [{ id: 'a', tool: 'read', arguments: '{}' }] },
      { role: 'tool', callId: 'a', tool: 'read', text: 'x', ok: true },
      { role: 'user', text: 'Go on.' },
    ],
  });

  test.each<[string, Partial<Compat>, object]>([
    ['as usual', {}, { max_tokens: 1_000, stream_options: { include_usage: true } }],
    [
      'with another field for the limit',
      { maxTokensField: 'max_completion_tokens' },
      { max_completion_tokens: 1_000 },
    ],
    [
      'with names of tools',
      { toolResultName: true },
      { messages: { 3: { role: 'tool', name: 'read' } } },
    ],
    [
      'with an answer to results',
      { replyAfterTools: true },
      {
        messages: {
          3: { role: 'tool' },
          4: { role: 'assistant', content: 'I have the results.' },
          5: { role: 'user' },
        },
      },
    ],
  ])('is as a server wants it: %s', (_, compat, expected) => {
    const body = encodeChatRequest(history, { ...defaultCompat, ...compat }, 'localhost');

    expect({ ...body, messages: { ...body.messages } }).toMatchObject(expected);
    expect(
      'stream_options' in
        encodeChatRequest(history, { ...defaultCompat, streamOptions: false }, 'localhost'),
    ).toBe(false);
    expect(encodeChatRequest(history, defaultCompat, 'localhost').messages).toHaveLength(5);
  });

  test('asks for the usage in the stream', () => {
    expect(encodeChatRequest(aRequest(), defaultCompat, 'localhost')).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    });
  });
});

describe('an answer', () => {
  test('is assembled by the index of each call, in order, with its arguments as text', () => {
    const { calls } = assembled(
      delta({ tool_calls: [part(1, { id: 'b', name: 'write', arguments: '{"a' })] }),
      delta({ tool_calls: [part(0, { id: 'a', name: 'read', arguments: '{}' })] }),
      delta({ tool_calls: [part(1, { arguments: '":' })] }),
    );

    expect(calls()).toEqual([
      { id: 'a', tool: 'read', arguments: '{}' },
      { id: 'b', tool: 'write', arguments: '{"a":' },
    ]);
  });

  test('keeps calls apart that came without an index, or all with the same', () => {
    const whole = (id: string, name: string) => ({ ...part(0, { id, name, arguments: '{}' }) });
    const { index: _, ...first } = whole('a', 'read');
    const { index: __, ...second } = whole('b', 'write');
    const expected = [
      { id: 'a', tool: 'read', arguments: '{}' },
      { id: 'b', tool: 'write', arguments: '{}' },
    ];

    expect(
      assembled(delta({ tool_calls: [first] }), delta({ tool_calls: [second] })).calls(),
    ).toEqual(expected);
    expect(
      assembled(delta({ tool_calls: [whole('a', 'read'), whole('b', 'write')] })).calls(),
    ).toEqual(expected);
  });

  test('continues a call whose pieces have no index, or a new id each', () => {
    const { index: _, ...begun } = part(0, { id: 'a', name: 'read', arguments: '{"path":' });
    const { index: __, ...rest } = part(0, { arguments: '"x"}' });
    const expected = [{ id: 'a', tool: 'read', arguments: '{"path":"x"}' }];

    expect(
      assembled(delta({ tool_calls: [begun] }), delta({ tool_calls: [rest] })).calls(),
    ).toEqual(expected);
    expect(
      assembled(
        delta({ tool_calls: [part(0, { id: 'a', name: 'read', arguments: '{"path":' })] }),
        delta({ tool_calls: [part(0, { id: 'other', arguments: '"x"}' })] }),
      ).calls(),
    ).toEqual(expected);
  });

  test('accepts arguments as an object, and usage inside the choice', () => {
    const call = { index: 0, id: 'a', function: { name: 'read', arguments: { path: 'x' } } };
    const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
    const last = wire({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls', usage }] });

    const answer = assembled(delta({ tool_calls: [call] }), last);

    expect(answer.calls()).toEqual([{ id: 'a', tool: 'read', arguments: '{"path":"x"}' }]);
    expect(answer.usage()).toEqual({
      inputTokens: 5,
      outputTokens: 3,
      cachedTokens: 0,
      cacheWriteTokens: 0,
    });
  });

  test('gets ids where the provider sent none', () => {
    const { calls } = assembled(
      delta({ tool_calls: [part(0, { name: 'read' }), part(1, { name: 'read' })] }, 'tool_calls'),
    );

    const ids = calls().map(({ id }) => id);
    expect(ids.every((id) => /^call_\w+$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(2);
  });

  test.each([
    ['text', { content: 'x' }, true],
    ['a part of a call', { tool_calls: [part(0, { name: 'read' })] }, true],
    ['reasoning', { reasoning_content: 'hm' }, true],
    ['reasoning by another name', { reasoning: 'hm' }, true],
    ['a role', { role: 'assistant', content: '' }, false],
    ['nothing', {}, false],
    ['null', { content: null }, false],
  ])('counts %s as progress: %s', (_, value, progress) => {
    expect(createChatAssembly(defaultCompat).add(delta(value)).progress).toBe(progress);
  });

  test('keeps its reasoning out of its text', () => {
    const { text } = assembled(delta({ reasoning_content: 'hm' }), delta({ content: 'yes' }));

    expect(text()).toBe('yes');
  });

  test('is unfinished until a reason comes, and an empty reason does not count', () => {
    const assembly = assembled(
      wire({ choices: [{ index: 0, delta: { content: 'x' }, finish_reason: '' }] }),
    );

    expect(assembly.finishReason()).toBeNull();
    assembly.add(delta({}, 'stop'));
    assembly.add(wire({ choices: [{ index: 0, delta: {}, finish_reason: '' }] }));
    expect(assembly.finishReason()).toBe('stop');
  });

  test('accepts a chunk without choices, without delta, and with usage', () => {
    const { usage, chunks } = assembled(
      wire({}),
      wire({ choices: [{ index: 0, finish_reason: 'stop' }] }),
      wire({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 3 } }),
    );

    expect(usage()).toEqual({
      inputTokens: 5,
      outputTokens: 3,
      cachedTokens: 0,
      cacheWriteTokens: 0,
    });
    expect(chunks()).toBe(3);
  });

  test.each(['cache_write_tokens', 'cache_creation_input_tokens'])(
    'counts %s as written to the cache',
    (name) => {
      const prompt_tokens_details = { cached_tokens: 2, [name]: 4 };
      const { usage } = assembled(
        wire({
          choices: [],
          usage: { prompt_tokens: 9, completion_tokens: 3, prompt_tokens_details },
        }),
      );

      expect(usage()).toEqual({
        inputTokens: 9,
        outputTokens: 3,
        cachedTokens: 2,
        cacheWriteTokens: 4,
      });
    },
  );

  test('counts only whole numbers that are not negative', () => {
    const { usage } = assembled(
      wire({ choices: [], usage: { prompt_tokens: -1, completion_tokens: 1.5 } }),
    );

    expect(usage()).toEqual({
      inputTokens: 0,
      outputTokens: 0,
      cachedTokens: 0,
      cacheWriteTokens: 0,
    });
  });
});

describe('calls that are printed as text', () => {
  const printed = '<tool_call>\n{"name": "read", "arguments": {"path": "x"}}\n</tool_call>';
  const read = (textToolCalls: boolean, ...chunks: readonly ChatCompletionChunk[]) => {
    const assembly = createChatAssembly({ textToolCalls });
    for (const chunk of chunks) assembly.add(chunk);
    return { text: assembly.text(), calls: assembly.calls() };
  };

  test('are calls where the settings say so, and text elsewhere', () => {
    const answer = delta({ content: `I look.\n${printed}` }, 'stop');

    expect(read(true, answer)).toEqual({
      text: 'I look.',
      calls: [{ id: 'call_0_0', tool: 'read', arguments: '{"path":"x"}' }],
    });
    expect(read(false, answer)).toEqual({ text: `I look.\n${printed}`, calls: [] });
  });

  test('stay text beside real ones', () => {
    const answer = delta({
      content: printed,
      tool_calls: [part(0, { id: 'a', name: 'grep', arguments: '{}' })],
    });

    expect(read(true, answer)).toEqual({
      text: printed,
      calls: [{ id: 'a', tool: 'grep', arguments: '{}' }],
    });
  });
});

test('OpenRouter is told up to where Anthropic keeps what it read, and nobody else is', () => {
  const request = aRequest({
    model: 'anthropic/claude-sonnet-4.5',
    messages: ['one', 'two', 'three'].flatMap((text) => [
      { role: 'user' as const, text },
      { role: 'assistant' as const, text: `${text}, yes`, calls: [] },
    ]),
  });
  const kept = (host: string, model = request.model): readonly unknown[] =>
    encodeChatRequest({ ...request, model }, defaultCompat, host).messages.flatMap(({ content }) =>
      typeof content === 'string' ? [] : [content],
    );
  const cache_control = { type: 'ephemeral' };

  expect(kept('openrouter.ai')).toEqual(
    ['You are an engineer.', 'two', 'three'].map((text) => [{ type: 'text', text, cache_control }]),
  );
  expect(kept('openrouter.ai', 'openai/gpt-5')).toEqual([]);
  expect(kept('127.0.0.1')).toEqual([]);
});
