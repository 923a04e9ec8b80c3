import { expect, test, vi } from 'vitest';
import {
  type AnyActorRef,
  type AnyStateMachine,
  createActor,
  fromPromise,
  type InspectionEvent,
  setup,
} from 'xstate';
import { inspectCommitted } from '../../../src/actors/engine/tasks/inspect-committed.ts';
import { durable } from '../../../src/actors/journal/durable-actor.ts';

const machine = setup({ actors: { job: fromPromise<number>(async () => 1) } }).createMachine({
  initial: 'resting',
  states: {
    resting: { on: { go: 'working' } },
    working: { invoke: { id: 'job', src: 'job', onDone: 'rested' } },
    rested: {},
  },
});

const messageOf = (event: InspectionEvent): unknown => {
  const name = (event.actorRef as AnyActorRef).id === 'job' ? 'job' : 'machine';
  if (event.type === '@xstate.actor') return [event.type, name];
  if (event.type === '@xstate.event') return [event.type, name, event.event.type];
  if (event.type !== '@xstate.snapshot') return null;
  const { value, status } = event.snapshot as { readonly value?: unknown; readonly status: string };
  return [event.type, name, event.event.type, value ?? status];
};

const messagesOf = async (logic: AnyStateMachine, wrap: typeof inspectCommitted) => {
  const messages: unknown[] = [];
  const inspect = wrap((event) => messages.push(messageOf(event)));
  const actor = createActor(logic, { inspect }).start();
  actor.send({ type: 'go' });
  await vi.waitFor(() => expect(actor.getSnapshot().value).toBe('rested'));
  return messages.filter((message) => message !== null);
};

const byActor = (messages: readonly unknown[], name: string) =>
  messages.filter((message) => Array.isArray(message) && message[1] === name);

test('an inspector sees of a durable actor what it sees of any, whenever the store answers', async () => {
  const port = { now: () => 1, deadlineMs: 1_000, later: () => () => {} };
  const late = durable(machine, { ...port, commit: async () => 'ok' as const });

  const plain = await messagesOf(machine, (inspect) => inspect);
  const shown = await messagesOf(late, inspectCommitted);

  for (const name of ['machine', 'job']) expect(byActor(shown, name)).toEqual(byActor(plain, name));
  expect(shown).toHaveLength(plain.length);
});

test('a child is shown only when the transition that creates it is committed', async () => {
  const messages: unknown[] = [];
  const port = { now: () => 1, deadlineMs: 1_000, later: () => () => {} };
  const silent = durable(machine, { ...port, commit: () => new Promise<'ok'>(() => {}) });
  const actor = createActor(silent, {
    inspect: inspectCommitted((event) => messages.push(messageOf(event))),
  }).start();

  actor.send({ type: 'go' });

  expect(byActor(messages, 'job')).toEqual([]);
  expect(byActor(messages, 'machine').at(-1)).toEqual(['@xstate.event', 'machine', 'go']);
});
