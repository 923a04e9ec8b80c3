import { expect, test, vi } from 'vitest';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { crash } from '../../support/crash.ts';
import { type Answer, type SeenRequest, startModelServer } from '../../support/model-server.ts';
import { type Setting, startSystem, untilStatus } from '../../support/running.ts';

/**
 * What a model thought goes back to it, word for word, through the whole system and over a crash.
 */

const look = (thought: { field: string; text: string }, text = 'I look.'): Answer => ({
  kind: 'answer',
  text,
  thought,
  calls: [{ id: 'call_1', name: 'find', arguments: '{"pattern":"*"}' }],
});
const finish: Answer = {
  kind: 'answer',
  calls: [{ id: 'call_2', name: 'finish', arguments: '{"status":"done","summary":"well"}' }],
};

const open = async (
  protocol: 'chat' | 'responses',
  answer: (number: number, seen: SeenRequest) => Answer,
  defaultModel = 'gpt-5.1',
) => {
  const provider = await startModelServer((seen, number) => answer(number, seen));
  const model = createOpenAiModel({
    protocol,
    apiKey: 'sk-test-0123456789',
    baseURL: provider.baseURL,
  });
  const setting: Setting = { model, options: { defaultModel } };
  const running = await startSystem(setting);
  const { task_id: id } = await running.service.create({ description: 'a task' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  return { provider, running, setting, id };
};

const sealed = {
  type: 'reasoning',
  id: 'rs_1',
  summary: [],
  encrypted_content: 'sealed-0123456789',
};
const bodies = (requests: readonly SeenRequest[]) => requests.map(({ body }) => body);

test.each(['I look.', ''])(
  'sealed thoughts go back before what they led to, and nothing is stored: %j',
  async (text) => {
    const thought = { field: '', text: 'sealed-0123456789' };
    const { provider, running, id } = await open('responses', (number) =>
      number === 1 ? look(thought, text) : finish,
    );

    await untilStatus(running, id, 'complete');

    const [first, second] = bodies(provider.requests);
    expect(first).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
    const input = second?.['input'] as readonly { type: string }[];
    const said = text === '' ? [] : ['message'];
    expect(input.map(({ type }) => type)).toEqual([
      'message',
      'reasoning',
      ...said,
      'function_call',
      'function_call_output',
    ]);
    expect(input[1]).toEqual(sealed);
  },
);

test('thoughts that nobody could open are not sent back, nor asked for where a model has none', async () => {
  const { provider, running, id } = await open(
    'responses',
    (number) => (number === 1 ? look({ field: '', text: '' }) : finish),
    'gpt-4o',
  );
  // An item with an empty seal counts as sealed; one of which only the name is known does not.
  const {
    provider: other,
    running: elsewhere,
    id: task,
  } = await open('responses', (number) =>
    number === 1 ? look({ field: '', text: undefined as unknown as string }) : finish,
  );

  await untilStatus(running, id, 'complete');
  await untilStatus(elsewhere, task, 'complete');

  expect(provider.requests[0]?.body['include']).toBeUndefined();
  expect(JSON.stringify(other.requests[1]?.body)).not.toContain('rs_1');
});

test.each(['reasoning_content', 'reasoning', 'reasoning_text'])(
  'over chat they go back in the field %s',
  async (field) => {
    const { provider, running, id } = await open('chat', (number) =>
      number === 1 ? look({ field, text: 'First I look around.' }) : finish,
    );

    await untilStatus(running, id, 'complete');

    const messages = provider.requests[1]?.body['messages'] as readonly Record<string, unknown>[];
    expect(messages[2]).toMatchObject({
      role: 'assistant',
      content: 'I look.',
      [field]: 'First I look around.',
    });
    // They are not what the model says.
    const frames = running.store.read({ taskId: id, after: 0, limit: 1_000 });
    expect(
      frames
        .filter(({ type }) => type === 'text_delta')
        .map(({ data }) => data)
        .join(''),
    ).not.toContain('First I');
  },
);

test.each(['chat', 'responses'] as const)(
  'they are kept over a crash, over %s',
  async (protocol) => {
    let crashed = false;
    const { provider, running, setting, id } = await open(protocol, (number) => {
      if (number === 1) return look({ field: 'reasoning_content', text: 'sealed-0123456789' });
      return crashed ? finish : { kind: 'silence' };
    });
    await vi.waitFor(() => expect(provider.requests).toHaveLength(2));
    crashed = true;
    const next = await startSystem(await crash(running, setting));

    await untilStatus(next, id, 'complete');

    const [, before, after] = bodies(provider.requests);
    expect(JSON.stringify(before)).toContain('sealed-0123456789');
    expect(JSON.stringify(after)).toBe(JSON.stringify(before));
  },
);

test('another model does not get them', async () => {
  const { provider, running, setting, id } = await open('responses', (number) =>
    number === 1
      ? look({ field: '', text: 'sealed-0123456789' })
      : number === 2
        ? { kind: 'silence' }
        : finish,
  );
  await vi.waitFor(() => expect(provider.requests).toHaveLength(2));
  const image = await crash(running, setting);
  const next = await startSystem({ ...image, options: { defaultModel: 'gpt-6' } });

  await untilStatus(next, id, 'complete');

  expect(provider.requests.at(-1)?.body['model']).toBe('gpt-6');
  expect(JSON.stringify(provider.requests.at(-1)?.body)).not.toContain('sealed-');
});
