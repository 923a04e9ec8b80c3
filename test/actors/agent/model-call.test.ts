import { expect, test } from 'vitest';
import { createConversation } from '../../../src/actors/agent/conversation.ts';
import { createModelCall } from '../../../src/actors/agent/model-call.ts';
import type { Session } from '../../../src/actors/agent/session.ts';
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
  conversation: createConversation('do it'),
  mcp: { tools: () => [] },
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
    emit: (_, type) => emitted.push(type),
    maxTokens: () => 100,
    now: () => 0,
  });
  const call = { turn: 1, step: 'think:1', messages: session.conversation.messages };

  await expect(callModel(session, attempt, call, AbortSignal.abort())).rejects.toThrow('abort');
  expect([asked, emitted]).toEqual([[], []]);

  await callModel(session, attempt, call, new AbortController().signal);
  expect(asked).toEqual(['bd-1#1/think:1']);
});
