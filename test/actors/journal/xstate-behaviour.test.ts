import { expect, test, vi } from 'vitest';
import {
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  createActor,
  type EventObject,
  emit,
  fromPromise,
  sendTo,
  setup,
} from 'xstate';

// The driver of durable actors leans on this; XState's documentation promises none of it.

const withScope = (
  machine: AnyStateMachine,
  change: (scope: AnyActorScope) => AnyActorScope,
): AnyStateMachine =>
  Object.create(machine, {
    transition: {
      value: (snapshot: AnyMachineSnapshot, event: EventObject, scope: AnyActorScope) =>
        machine.transition(snapshot, event, change(scope)),
    },
  });

test('deferred functions run after the snapshot is set', () => {
  const machine = setup({}).createMachine({
    initial: 'a',
    states: { a: { on: { go: 'b' } }, b: {} },
  });
  const seen: unknown[] = [];
  const actor = createActor(
    withScope(machine, (scope) => {
      scope.defer(() => seen.push(scope.self.getSnapshot().value));
      return scope;
    }),
  ).start();

  actor.send({ type: 'go' });

  expect(seen).toEqual(['b']);
});

test('built-in actions pass actionExecutor in their order, and act in defer; xstate.cancel carries sendId', () => {
  const peer = createActor(setup({}).createMachine({})).start();
  const machine = setup({
    actors: { job: fromPromise<void>(() => new Promise(() => {})) },
  }).createMachine({
    initial: 'a',
    states: {
      a: { after: { 1000: 'b' }, on: { go: 'b' } },
      b: { entry: [emit({ type: 'told' }), sendTo(peer, { type: 'x' })], invoke: { src: 'job' } },
    },
  });
  const passed: { type: string; params: unknown }[] = [];
  let inAction = false;
  const deferredOutside: boolean[] = [];
  const actor = createActor(
    withScope(machine, (scope) => ({
      ...scope,
      defer: (run) => {
        deferredOutside.push(!inAction);
        scope.defer(run);
      },
      actionExecutor: (action) => {
        passed.push(action);
        inAction = true;
        scope.actionExecutor(action);
        inAction = false;
      },
    })),
  ).start();

  actor.send({ type: 'go' });

  expect(passed.map(({ type }) => type)).toEqual([
    'xstate.cancel',
    'xstate.emit',
    'xstate.sendTo',
    'xstate.spawnChild',
  ]);
  expect(passed[0]?.params).toEqual({ sendId: 'xstate.after.1000.(machine).a' });
  expect(deferredOutside).not.toContain(true);
});

test('the event of a delay has the id of its timer as type', () => {
  const timers: (() => void)[] = [];
  const clock = { setTimeout: (run: () => void) => timers.push(run), clearTimeout: () => {} };
  const types: string[] = [];
  const machine = setup({}).createMachine({
    initial: 'a',
    states: { a: { after: { 1000: 'b' } }, b: { entry: ({ event }) => types.push(event.type) } },
  });
  createActor(machine, { clock }).start();

  timers[0]?.();

  expect(types).toEqual(['xstate.after.1000.(machine).a']);
});

test('start on a child that has ended tells its parent', async () => {
  const machine = setup({ actors: { job: fromPromise<number>(async () => 1) } }).createMachine({
    initial: 'a',
    states: { a: { invoke: { id: 'job', src: 'job', onDone: 'b' } }, b: {} },
  });
  const saved = JSON.parse(JSON.stringify(createActor(machine).getPersistedSnapshot()));
  saved.children.job.snapshot = { status: 'done', output: 1 };
  const actor = createActor(machine, { snapshot: saved }).start();
  expect(actor.getSnapshot().value).toBe('a');

  actor.getSnapshot().children['job']?.start();

  expect(actor.getSnapshot().value).toBe('b');
});

test('a thrown transition ends the actor and does not stop its children', () => {
  const signals: AbortSignal[] = [];
  const job = fromPromise<void>(({ signal }) => {
    signals.push(signal);
    return new Promise(() => {});
  });
  const machine = setup({ actors: { job } }).createMachine({ invoke: { src: 'job' } });
  const actor = createActor(
    withScope(machine, () => {
      throw new Error('it broke');
    }),
  );
  const onError = vi.fn();
  actor.subscribe({ error: onError });
  actor.start();

  actor.send({ type: 'go' });

  expect([onError.mock.calls, actor.getSnapshot().status]).toEqual([
    [[new Error('it broke')]],
    'error',
  ]);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
});
