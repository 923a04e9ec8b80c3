import { expect, test } from 'vitest';
import { createModelCall } from '../../../src/actors/agent/model-call.ts';
import { createConversation, type Session } from '../../../src/actors/agent/session.ts';
import type { Model } from '../../../src/actors/model/port.ts';
import type { AttemptInput, TaskId } from '../../../src/machines/task.ts';

const attempt = {
  taskId: 'bd-1' as TaskId,
  attempt: 1,
  role: 'engineer',
  options: {},
} as AttemptInput;
const session = {
  task: { title: 'a task' },
  profile: { tools: [] },
  system: 'You are an engineer.',
  conversation: createConversation({ text: 'do it' }),
  mcp: { tools: () => [], refresh: async () => {} },
  steps: { imagesRefused: () => false },
} as unknown as Session;

test('a call that is given up while its intent is saved does not reach the model, nor a reader', async () => {
  const asked: string[] = [];
  const emitted: string[] = [];
  const model: Model = {
    name: 'counting',
    disclaimer: null,
    async *ask({ idempotencyKey }) {
      asked.push(idempotencyKey);
      yield { type: 'text', delta: 'so' };
    },
  };
  const callModel = createModelCall({
    chooseModel: () => ({ model, name: 'm' }),
    priceFor: () => undefined,
    wasCut: async () => false,
    budgetRefusal: async () => null,
    addCut: () => {},
    emit: (_, type) => emitted.push(type),
    images: { find: () => null },
    maxTokens: () => 100,
    now: () => 0,
  });
  const call = { turn: 1, step: 'think:1', messages: session.conversation.messages };

  await expect(callModel(session, attempt, call, AbortSignal.abort())).rejects.toThrow('abort');
  expect([asked, emitted]).toEqual([[], []]);

  await callModel(session, attempt, call, new AbortController().signal);
  expect(asked).toEqual([expect.stringMatching(/^bd-1#1\/[\w-]{43}\/think:1$/)]);

  const other = { ...session, system: 'another project' };
  await callModel({ ...session }, attempt, call, new AbortController().signal);
  await callModel(session, attempt, call, new AbortController().signal);
  await callModel(other, attempt, call, new AbortController().signal);
  const [first, again, second, elsewhere] = asked;
  expect(again).toBe(first);
  expect(new Set([first, second, elsewhere]).size).toBe(3);
});

test('an answer without words is no empty message, which strict providers refuse for ever', () => {
  const conversation = createConversation({ text: 'do it' });
  const usage = { inputTokens: 1, outputTokens: 0, cachedTokens: 0 };

  for (const truncated of [false, true])
    conversation.addAnswer({ type: 'answered', text: ' \n', calls: [], truncated, usage });

  expect(conversation.messages.slice(1).map(({ text }) => text)).toEqual([
    '(no answer)',
    '(cut off)',
  ]);
});
