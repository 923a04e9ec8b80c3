import { expect, test, vi } from 'vitest';
import { createActor, fromPromise, setup } from 'xstate';
import { transitionDeadline } from '../../../src/actors/journal/commit-answer.ts';
import { durable } from '../../../src/actors/journal/durable-actor.ts';

interface Seen {
  readonly from: unknown;
  readonly to: unknown;
  readonly event: object;
}

/** A chart that works on `go`, and what was committed and started, in order. */
const setUp = (
  work: (signal: AbortSignal) => Promise<string>,
  onCommit: (seen: Seen) => void = () => {},
) => {
  const order: string[] = [];
  const seen: Seen[] = [];
  const machine = setup({
    types: { events: {} as { type: 'go' | 'idle' | 'rest' } },
    actors: { work: fromPromise<string, void>(({ signal }) => work(signal)) },
    actions: { keep: () => {} },
  }).createMachine({
    id: 'small',
    initial: 'resting',
    states: {
      resting: { on: { go: 'working', idle: { actions: 'keep' } } },
      working: {
        invoke: { id: 'work', src: 'work', onDone: 'done', onError: 'broken' },
        on: { rest: 'resting' },
      },
      done: {},
      broken: {},
    },
  });
  const logic = durable(
    machine.provide({
      actors: {
        work: fromPromise<string, void>(({ signal }) => {
          order.push('started');
          return work(signal);
        }),
      },
    }),
    {
      now: () => 42,
      commit: ({ next, cause, previous }) => {
        const entry = { from: previous.value, to: next.value, event: cause };
        onCommit(entry);
        seen.push(entry);
        order.push(`committed ${JSON.stringify(next.value)}`);
        return 'ok';
      },
      ...transitionDeadline(0),
    },
  );
  return { logic, order, seen };
};

test('a transition is committed before its effects start', async () => {
  const { logic, order } = setUp(() => new Promise(() => {}));
  const actor = createActor(logic).start();

  actor.send({ type: 'go' });

  expect(order).toEqual(['committed "working"', 'started']);
});

test('a transition that cannot be committed ends the actor, and nothing of it starts', () => {
  const { logic, order } = setUp(
    () => new Promise(() => {}),
    ({ to }) => {
      if (to === 'working') throw new Error('disk full');
    },
  );
  const actor = createActor(logic);
  const onError = vi.fn();
  actor.subscribe({ error: onError });
  actor.start();

  actor.send({ type: 'go' });

  expect(order).toEqual([]);
  expect(onError).toHaveBeenCalledWith(new Error('disk full'));
  expect(actor.getSnapshot().status).toBe('error');
});

test('the children of an actor stop when it ends because a transition cannot be committed', () => {
  const signals: AbortSignal[] = [];
  const { logic } = setUp(
    (signal) => {
      signals.push(signal);
      return new Promise(() => {});
    },
    ({ to }) => {
      if (to === 'resting' && signals.length > 0) throw new Error('disk full');
    },
  );
  const actor = createActor(logic);
  actor.subscribe({ error: () => {} });
  actor.start();
  actor.send({ type: 'go' });
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);

  actor.send({ type: 'rest' });

  expect(actor.getSnapshot().status).toBe('error');
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});

test('every event carries its time, and an error becomes data', async () => {
  const { logic, seen } = setUp(() => Promise.reject(new TypeError('no such file')));
  const actor = createActor(logic);
  const ended = new Promise((resolve) =>
    actor.subscribe((snapshot) => snapshot.value === 'broken' && resolve(undefined)),
  );
  actor.start();
  actor.send({ type: 'go' });
  await ended;

  expect(seen.map(({ event }) => event)).toMatchObject([
    { type: 'go', at: 42 },
    {
      type: 'xstate.error.actor.work',
      at: 42,
      error: { name: 'TypeError', message: 'no such file' },
    },
  ]);
});

test('an event that changes nothing is not committed, and neither is a stop', () => {
  const { logic, seen } = setUp(() => new Promise(() => {}));
  const actor = createActor(logic).start();

  actor.send({ type: 'idle' });
  actor.stop();

  expect(seen).toEqual([]);
});

test('a restored actor starts its work again and commits nothing for it', () => {
  const first = setUp(() => new Promise(() => {}));
  const actor = createActor(first.logic).start();
  actor.send({ type: 'go' });
  const persisted = JSON.parse(JSON.stringify(actor.getPersistedSnapshot()));
  actor.stop();
  const second = setUp(() => new Promise(() => {}));

  createActor(second.logic, { snapshot: persisted }).start();

  expect(second.order).toEqual(['started']);
});
