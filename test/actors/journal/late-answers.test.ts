import { expect, test, vi } from 'vitest';
import {
  type AnyStateMachine,
  assign,
  createActor,
  type EventObject,
  emit,
  fromPromise,
  sendTo,
  setup,
} from 'xstate';
import { durable } from '../../../src/actors/journal/durable-actor.ts';
import { sendRequest } from '../../../src/actors/journal/requests.ts';
import { type CommitAnswer, StoreError } from '../../../src/actors/store/port.ts';

/** A store that answers when the test says so. */
const setUpStore = () => {
  const asked: {
    to: unknown;
    answer: (word: CommitAnswer) => void;
    fail: (error: unknown) => void;
  }[] = [];
  const timers: (() => void)[] = [];
  const port = {
    now: () => 42,
    commit: ({ next }: { readonly next: { readonly value: unknown } }) =>
      new Promise<CommitAnswer>((answer, fail) => {
        asked.push({ to: next.value, answer, fail });
      }),
    deadlineMs: 100,
    later: (run: () => void) => {
      timers.push(run);
      return () => void timers.splice(timers.indexOf(run), 1);
    },
  };
  return {
    asked,
    timers,
    durably: <Machine extends AnyStateMachine>(machine: Machine) => durable(machine, port),
    answer: async (word: CommitAnswer = 'ok') => {
      asked.shift()?.answer(word);
      await vi.waitFor(() => {});
    },
  };
};

/** Works until the test ends the work; each piece of work has a number. */
const setUpChart = (heard: string[] = []) => {
  const works: {
    signal: AbortSignal;
    end: (result: number) => void;
    fail: (error: Error) => void;
  }[] = [];
  const peer = createActor(
    setup({}).createMachine({
      on: { '*': { actions: ({ event }) => heard.push(`sent ${event.type}`) } },
    }),
  ).start();
  const machine = setup({
    types: {
      context: {} as { entries: number },
      events: {} as { type: 'go' | 'rest' | 'again' | 'note' | 'end' },
      emitted: {} as EventObject,
    },
    actors: {
      work: fromPromise<number, void>(
        ({ signal }) =>
          new Promise((end, fail) => {
            heard.push(`work ${works.length}`);
            works.push({ signal, end, fail });
          }),
      ),
    },
    actions: {
      count: assign({ entries: ({ context }) => context.entries + 1 }),
      note: () => heard.push('noted'),
      tell: emit({ type: 'told' }),
      send: sendTo(peer, { type: 'hello' }),
    },
  }).createMachine({
    initial: 'resting',
    context: { entries: 0 },
    on: { end: '.over' },
    states: {
      resting: { on: { go: { target: 'working', actions: ['note', 'tell', 'send'] } } },
      working: {
        invoke: { id: 'work', src: 'work', onDone: 'rested' },
        on: { rest: 'resting', again: { target: 'working', reenter: true } },
      },
      rested: {
        after: { 30: 'resting' },
        on: { again: { target: 'rested', reenter: true, actions: 'count' } },
      },
      over: { type: 'final' },
    },
  });
  return { machine, works, heard };
};

test('until the store has answered, nothing of a transition is shown, done, sent, emitted or started', async () => {
  const { machine, heard } = setUpChart();
  const store = setUpStore();
  const actor = createActor(store.durably(machine));
  actor.on('*', ({ type }) => heard.push(type));
  const shown: unknown[] = [];
  actor.subscribe(({ value }) => shown.push(value));
  actor.start();

  actor.send({ type: 'go' });

  expect([heard, new Set(shown), actor.getSnapshot().value]).toEqual([
    [],
    new Set(['resting']),
    'resting',
  ]);
  await store.answer();
  expect(heard).toEqual(['noted', 'told', 'sent hello', 'work 0']);
  expect([actor.getSnapshot().value, shown.at(-1)]).toEqual(['working', 'working']);
});

test('events wait for the answer and are taken in their order', async () => {
  const { machine } = setUpChart();
  const store = setUpStore();
  const actor = createActor(store.durably(machine)).start();

  for (const type of ['go', 'rest', 'go'] as const) actor.send({ type });

  for (const to of ['working', 'resting', 'working']) {
    expect(store.asked.map((each) => each.to)).toEqual([to]);
    await store.answer();
  }
  expect(actor.getSnapshot().value).toBe('working');
});

test.each<[string, (store: ReturnType<typeof setUpStore>) => unknown]>([
  ['is stale', (store) => store.answer('stale')],
  ['fails', (store) => store.asked[0]?.fail(new Error('no route'))],
  ['is not answered in time', (store) => store.timers[0]?.()],
])(
  'when a commit %s the actor ends, its work stops, and nothing of the transition happens',
  async (_, happen) => {
    const { machine, works, heard } = setUpChart();
    const store = setUpStore();
    const actor = createActor(store.durably(machine));
    const onError = vi.fn();
    actor.subscribe({ error: onError });
    actor.start();
    actor.send({ type: 'go' });
    await store.answer();
    actor.send({ type: 'again' });

    await happen(store);

    await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(1));
    expect(actor.getSnapshot()).toMatchObject({ status: 'error', value: 'working' });
    expect(works.map(({ signal }) => signal.aborted)).toEqual([true]);
    expect(heard.filter((each) => each.startsWith('work'))).toEqual(['work 0']);
    expect(store.timers, 'no timer is left').toEqual([]);
  },
);

test('the end of work that is stopped by the pending transition is not taken for the end of the next', async () => {
  const { machine, works } = setUpChart();
  const store = setUpStore();
  const actor = createActor(store.durably(machine)).start();
  actor.send({ type: 'go' });
  await store.answer();

  actor.send({ type: 'again' });
  works[0]?.end(0);
  await store.answer();

  await vi.waitFor(() => expect(works).toHaveLength(2));
  expect([actor.getSnapshot().value, store.asked]).toEqual(['working', []]);
});

test('a timer that the pending transition cancels does not fire into the next state', async () => {
  const { machine, works } = setUpChart();
  const store = setUpStore();
  const timers: (() => void)[] = [];
  const clock = { setTimeout: (run: () => void) => timers.push(run), clearTimeout: () => {} };
  const actor = createActor(store.durably(machine), { clock }).start();
  actor.send({ type: 'go' });
  await store.answer();
  works[0]?.end(0);
  await vi.waitFor(() => expect(store.asked).toHaveLength(1));
  await store.answer();
  expect(actor.getSnapshot().value).toBe('rested');

  actor.send({ type: 'again' });
  timers[0]?.();
  await store.answer();

  expect([actor.getSnapshot().value, store.asked, timers.length]).toEqual(['rested', [], 2]);
});

test('work that ended before a crash, saved as ended by an earlier event, ends again for the restored actor', async () => {
  const { machine, works } = setUpChart();
  const first = createActor(machine).start();
  first.send({ type: 'go' });
  const saved = JSON.parse(JSON.stringify(first.getPersistedSnapshot()));
  saved.children.work.snapshot = { status: 'done', output: 7 };
  first.stop();
  const store = setUpStore();

  const actor = createActor(store.durably(machine), { snapshot: saved }).start();
  await vi.waitFor(() => expect(store.asked.map(({ to }) => to)).toEqual(['rested']));
  await store.answer();

  expect([actor.getSnapshot().value, works.length]).toEqual(['rested', 1]);
});

test('a stop while a commit is pending stops the work, and the answer changes nothing', async () => {
  const { machine, works, heard } = setUpChart();
  const store = setUpStore();
  const actor = createActor(store.durably(machine)).start();
  actor.send({ type: 'go' });
  await store.answer();
  actor.send({ type: 'again' });

  actor.stop();
  await store.answer();

  expect(works.map(({ signal }) => signal.aborted)).toEqual([true]);
  expect([actor.getSnapshot().status, heard.filter((each) => each.startsWith('work'))]).toEqual([
    'stopped',
    ['work 0'],
  ]);
});

test('an actor does not keep more than 1,000 waiting events', async () => {
  const { machine } = setUpChart();
  const store = setUpStore();
  const actor = createActor(store.durably(machine));
  const onError = vi.fn();
  actor.subscribe({ error: onError });
  actor.start();

  for (let n = 0; n <= 1_001; n += 1) actor.send({ type: 'go' });

  expect(onError).toHaveBeenCalledWith(
    new StoreError('too many events wait for the store; try again'),
  );
});

const allowed = { requestId: null, requireAllowed: () => {}, answer: () => {} };

test('a request is answered when its own transition is shown, not when one before it is', async () => {
  const { machine } = setUpChart();
  const store = setUpStore();
  const actor = createActor(store.durably(machine)).start();
  const answered: string[] = [];
  actor.send({ type: 'go' });

  const done = sendRequest(actor, { type: 'rest' }, allowed).then(() => answered.push('rest'));
  await store.answer();
  expect(answered).toEqual([]);
  await store.answer();

  await done;
  expect([answered, actor.getSnapshot().value]).toEqual([['rest'], 'resting']);
});

test('a request is allowed or refused at its turn', async () => {
  const { machine } = setUpChart();
  const store = setUpStore();
  const actor = createActor(store.durably(machine)).start();
  actor.send({ type: 'go' });
  const request = sendRequest(
    actor,
    { type: 'go' },
    {
      requestId: null,
      requireAllowed: (snapshot: { readonly value: unknown }) => {
        if (snapshot.value !== 'resting') throw new Error(`it is ${snapshot.value}`);
      },
      answer: () => {},
    },
  );
  const onRefused = vi.fn();
  request.catch(onRefused);

  await store.answer();

  await vi.waitFor(() => expect(onRefused).toHaveBeenCalledWith(new Error('it is working')));
  expect([actor.getSnapshot().value, store.asked]).toEqual(['working', []]);
});

test.each<
  [string, (actor: { stop(): void }, store: ReturnType<typeof setUpStore>) => unknown, RegExp]
>([
  [
    'is stale',
    (_, store) => store.answer('stale'),
    /changed by another request at the same time; try again/,
  ],
  ['fails', (_, store) => store.asked[0]?.fail(new Error('no route')), /no route/],
  ['is pending when its actor stops', (actor) => actor.stop(), /stopped/],
])('a request whose commit %s is told so, and so are those behind it', async (_, happen, says) => {
  const { machine } = setUpChart();
  const store = setUpStore();
  const actor = createActor(store.durably(machine)).start();
  const requests = (['go', 'rest'] as const).map((type) => sendRequest(actor, { type }, allowed));
  const ends = Promise.allSettled(requests);

  await happen(actor, store);

  for (const end of await ends)
    expect(end).toMatchObject({ status: 'rejected', reason: { message: says } });
  await expect(sendRequest(actor, { type: 'go' }, allowed)).rejects.toThrow('has ended');
});

test('the id of a request goes with the commit of its own event', async () => {
  const { machine } = setUpChart();
  const ids: unknown[] = [];
  const port = { now: () => 1, deadlineMs: 1, later: () => () => {} };
  const commit = ({ requestId, cause }: { requestId: string | null; cause: EventObject }) => {
    ids.push([cause.type, requestId]);
    return Promise.resolve('ok' as const);
  };
  const actor = createActor(durable(machine, { ...port, commit })).start();
  actor.send({ type: 'go' });

  await sendRequest(actor, { type: 'rest' }, { ...allowed, requestId: 'r1' });
  actor.send({ type: 'go' });

  expect(ids).toEqual([
    ['go', null],
    ['rest', 'r1'],
    ['go', null],
  ]);
});
