import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { describe, expect, test } from 'vitest';
import {
  createResponseAssembly,
  encodeResponseRequest,
} from '../../../src/actors/model/openai/openai-responses.ts';
import { aRequest } from '../../contracts/model.ts';

/** An event as it comes from the wire: the SDK's type promises more than gateways send. */
const wire = (type: string, fields: object = {}): ResponseStreamEvent =>
  JSON.parse(JSON.stringify({ type, ...fields }));
const text = (delta: string) => wire('response.output_text.delta', { output_index: 0, delta });
const item = (stage: 'added' | 'done', index: number, given: object) =>
  wire(`response.output_item.${stage}`, { output_index: index, item: given });
const call = (id: string, name: string, given = '') => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: given,
});
const piece = (index: number, delta: string) =>
  wire('response.function_call_arguments.delta', { output_index: index, delta });
const last = (name: string, response: object = {}) => wire(`response.${name}`, { response });
const message = (...content: object[]) => ({ type: 'message', role: 'assistant', content });
const assembled = (...events: readonly ResponseStreamEvent[]) => {
  const assembly = createResponseAssembly();
  for (const event of events) assembly.add(event);
  return assembly;
};

describe('a request', () => {
  test('leaves out what would be empty', () => {
    const body = encodeResponseRequest(
      aRequest({
        tools: [],
        messages: [
          { role: 'assistant', text: '', calls: [{ id: 'c1', tool: 'read', arguments: '{}' }] },
        ],
      }),
    );

    expect(body).not.toHaveProperty('tools');
    expect(body.input).toEqual([
      { type: 'function_call', call_id: 'c1', name: 'read', arguments: '{}' },
    ]);
  });

  test('starts with the same items as the previous request', () => {
    const messages = [
      { role: 'user', text: 'Do it.' },
      { role: 'assistant', text: 'I look.', calls: [] },
    ] as const;

    const [before, after] = [
      messages,
      [...messages, { role: 'user', text: 'Go on.' } as const],
    ].map((given) => encodeResponseRequest(aRequest({ messages: given })).input);

    expect(after?.slice(0, 2)).toEqual(before);
  });
});

describe('an answer', () => {
  test('is assembled by the index of each item, in order, with its arguments as text', () => {
    const { calls } = assembled(
      item('added', 2, call('b', 'write')),
      item('added', 1, call('a', 'read')),
      piece(2, '{"a'),
      piece(1, '{}'),
      piece(2, '":'),
    );

    expect(calls()).toEqual([
      { id: 'a', tool: 'read', arguments: '{}' },
      { id: 'b', tool: 'write', arguments: '{"a":' },
    ]);
  });

  test.each([
    [
      'its arguments',
      [wire('response.function_call_arguments.done', { output_index: 1, arguments: '{"a":1}' })],
    ],
    ['the item', [item('done', 1, call('a', 'read', '{"a":1}'))]],
    ['both, though the item comes without', [piece(1, ':1}'), item('done', 1, call('', ''))]],
  ])('takes a whole call when %s is done', (_, events) => {
    const { calls } = assembled(item('added', 1, call('a', 'read')), piece(1, '{"a"'), ...events);

    expect(calls()).toEqual([{ id: 'a', tool: 'read', arguments: '{"a":1}' }]);
  });

  test('takes a text from its item only when no pieces were sent', () => {
    const whole = item('done', 0, message({ type: 'output_text', text: 'yes' }));

    expect(createResponseAssembly().add(whole)).toEqual({ text: 'yes', progress: true });
    expect(assembled(text('ye'), text('s'), whole).text()).toBe('yes');
  });

  test('shows a refusal as text', () => {
    const refused = wire('response.refusal.delta', { output_index: 0, delta: 'I cannot.' });

    expect(createResponseAssembly().add(refused)).toEqual({ text: 'I cannot.', progress: true });
    expect(assembled(item('done', 0, message({ type: 'refusal', refusal: 'No.' }))).text()).toBe(
      'No.',
    );
  });

  test.each([
    ['text', text('x'), true],
    ['a begun call', item('added', 1, call('a', 'read')), true],
    ['a part of a call', piece(1, '{'), true],
    ['reasoning', wire('response.reasoning_text.delta', { delta: 'hm' }), true],
    [
      'a summary of reasoning',
      wire('response.reasoning_summary_text.delta', { delta: 'hm' }),
      true,
    ],
    ['reasoning that is not shown', item('done', 0, { type: 'reasoning', summary: [] }), true],
    ['a begun message', item('added', 0, message()), false],
    ['no text', text(''), false],
    ['the start', last('created'), false],
    ['a keep-alive', wire('keepalive'), false],
    ['an event that nobody knows', wire('response.dreaming.delta', { delta: 'zz' }), false],
  ])('makes progress by %s: %j → %s', (_, event, progress) => {
    expect(createResponseAssembly().add(event).progress).toBe(progress);
  });

  test('keeps its reasoning out of its text', () => {
    const assembly = assembled(wire('response.reasoning_text.delta', { delta: 'hm' }), text('yes'));

    expect(assembly.text()).toBe('yes');
  });

  test.each([
    ['completed', {}, 'stop'],
    ['incomplete', { incomplete_details: { reason: 'max_output_tokens' } }, 'length'],
    ['incomplete', { incomplete_details: { reason: 'content_filter' } }, 'content_filter'],
    ['incomplete', { incomplete_details: { reason: 'the moon' } }, 'the moon'],
    ['incomplete', {}, 'incomplete'],
    ['completed', { incomplete_details: { reason: 'max_output_tokens' } }, 'length'],
    ['in_progress', {}, null],
  ])('that is %s with %j ends with %s', (name, response, reason) => {
    expect(assembled(last(name, response)).finishReason()).toBe(reason);
  });

  test('counts only whole numbers that are not negative', () => {
    const usage = (given: object) => assembled(last('completed', { usage: given })).usage();

    expect(
      usage({ input_tokens: 5, output_tokens: 3, input_tokens_details: { cached_tokens: 2 } }),
    ).toEqual({
      inputTokens: 5,
      outputTokens: 3,
      cachedTokens: 2,
      cacheWriteTokens: 0,
    });
    expect(usage({ input_tokens: -1, output_tokens: 1.5 })).toEqual({
      inputTokens: 0,
      outputTokens: 0,
      cachedTokens: 0,
      cacheWriteTokens: 0,
    });
    expect(assembled(last('completed')).usage()).toBeNull();
  });

  test.each([
    ['an error', wire('error', { code: 'server_error', message: 'overloaded' })],
    ['a failure', last('failed', { error: { code: 'server_error', message: 'overloaded' } })],
  ])('throws what %s says', (_, event) => {
    expect(() => createResponseAssembly().add(event)).toThrow(
      expect.objectContaining({ code: 'server_error' }),
    );
  });

  test('throws for a failure without a reason too', () => {
    expect(() => createResponseAssembly().add(last('failed'))).toThrow();
  });
});
