import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createJournal } from '../../../src/actors/journal/journal.ts';
import {
  ChangeRefusedError,
  DatabaseRefusedError,
  type Entry,
  type EntryListener,
  type NewEntry,
  type Store,
  StoreError,
} from '../../../src/actors/store/port.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import { atOnce } from '../../simulation/at-once.ts';

const line = (taskId: string, n: number): NewEntry => ({
  taskId,
  attempt: 1,
  type: 'log',
  at: n,
  data: JSON.stringify(n),
  cause: null,
});

const setUp = () => {
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const [onError, onListenerError] = [vi.fn(), vi.fn()];
  return {
    store,
    onError,
    onListenerError,
    journal: createJournal(store, { node: 'n', onError, onListenerError }),
  };
};

test('gathered progress stands before the transition that follows it, in one commit', () => {
  const { store, journal } = setUp();
  journal.gather({ entries: [line('bd-a', 1)] });
  journal.gather({ entries: [line('bd-a', 2)] });

  const heard = vi.fn();
  journal.onCommit((entries) => heard(entries.map(({ data }) => data)));
  expect(journal.commit({ entries: [line('bd-a', 3)] })).toBe('ok');

  expect(heard.mock.calls).toEqual([[['1', '2', '3']]]);
  expect(store.lastSeq()).toBe(3);
});

test('gathered progress is committed by itself after a moment', async () => {
  const { store, journal } = setUp();
  const told = new Promise<readonly Entry[]>((resolve) => journal.onCommit(resolve));

  journal.gather({ entries: [line('bd-a', 1)] });

  expect(store.lastSeq()).toBe(0);
  expect(await told).toHaveLength(1);
});

test('progress that cannot be committed is kept, said, and committed by itself later', async () => {
  const { store, journal, onError } = setUp();
  const commit = vi.spyOn(store, 'commit').mockImplementationOnce(() => {
    throw new Error('disk full');
  });
  const told = new Promise((resolve) => onError.mockImplementation(resolve));
  journal.gather({ entries: [line('bd-a', 1)] });

  const written = new Promise((resolve) => journal.onCommit(resolve));

  expect(await told).toEqual(new Error('disk full'));
  expect(journal.problem()).toBe('disk full');
  await written;
  expect(journal.problem()).toBeNull();

  expect(commit).toHaveBeenCalledTimes(2);
  expect(store.lastSeq()).toBe(1);
});

test('a gathered change is committed with the next one, or by itself after a moment, and never given up', async () => {
  const { store, journal, onError } = setUp();
  const actor = (pending: boolean) => ({
    id: 'bd-a',
    taskId: 'bd-a',
    version: 1,
    pending,
    changedAt: 1,
    snapshot: '{"value":"x","context":{}}',
  });
  journal.gather({ actor: actor(true), entries: [line('bd-a', 1)] });
  expect(store.actor('bd-a')).toBeNull();

  expect(journal.commit({ actor: actor(false), entries: [line('bd-a', 2)] })).toBe('ok');
  expect(store.lastSeq()).toBe(2);
  expect(store.actor('bd-a')?.pending).toBe(false);

  const failing = vi.spyOn(store, 'commit').mockImplementation(() => {
    throw new Error('disk full');
  });
  journal.gather({ actor: actor(true), entries: [line('bd-a', 3)] });
  const step = { taskId: 'bd-a', attempt: 1, key: 'think:1', intent: '{}', result: '{}' };
  journal.gather({ entries: [], step });
  const large = { ...line('bd-a', 4), data: JSON.stringify('x'.repeat(1024 * 1024)) };
  for (let n = 0; n < 20; n += 1) journal.gather({ entries: [large] });
  await new Promise((resolve) => onError.mockImplementation(resolve));
  failing.mockRestore();
  expect(journal.flush()).toBe('ok');
  expect(store.actor('bd-a')?.pending).toBe(true);
  expect(store.steps('bd-a', 1)).toEqual([step]);
  expect(store.lastSeq()).toBe(2 + 1 + 15);
});

test('gathered states of an actor that follow each other are saved as one, with the entries of all', () => {
  const { store, journal } = setUp();
  const state = (revision: number, id = 'bd-a') => ({
    actor: {
      id,
      taskId: id,
      version: 1,
      pending: true,
      changedAt: 1,
      snapshot: `"of revision ${revision}"`,
    },
    guard: { revision, attempt: 0 },
    entries: [line(id, revision)],
  });
  const request = { id: 'r1', taskId: 'bd-a' };
  expect(journal.gather({ ...state(0), request })).toBe('added');
  expect(journal.gather(state(1))).toBe('joined');
  // What happened between two states of an actor stays between them.
  expect(journal.gather(state(0, 'bd-b'))).toBe('added');
  expect(journal.gather(state(1))).toBe('added');
  // A change with a condition of its own may be refused alone.
  expect(journal.gather({ ...state(2), tasks: [] })).toBe('added');

  expect(journal.flush()).toBe('ok');

  expect(store.actor('bd-a')).toMatchObject({ revision: 3, snapshot: '"of revision 2"' });
  expect(store.request('r1')).toMatchObject({ taskId: 'bd-a' });
  const entries = store.read({ after: 0, limit: 9 });
  expect(entries.map(({ taskId, data }) => `${taskId} ${data}`)).toEqual([
    'bd-a 0',
    'bd-a 1',
    'bd-b 0',
    'bd-a 1',
    'bd-a 2',
  ]);
});

test('the gathered states of a failed actor are dropped, its progress is kept', () => {
  const { store, journal } = setUp();
  const actor = {
    id: 'bd-a',
    taskId: 'bd-a',
    version: 1,
    pending: true,
    changedAt: 1,
    snapshot: '{}',
  };
  journal.gather({ actor, entries: [line('bd-a', 1)] });
  journal.gather({ entries: [line('bd-a', 2)] });

  journal.discard('bd-a');
  expect(journal.flush()).toBe('ok');

  expect(store.actor('bd-a')).toBeNull();
  expect(store.read({ after: 0, limit: 9 }).map(({ data }) => data)).toEqual(['2']);
});

test('an error of a listener is reported; the commit stands, and the other listeners hear of it', () => {
  const { store, journal, onListenerError } = setUp();
  const heard: string[] = [];
  journal.onCommit(() => {
    throw new Error('a listener broke');
  });
  journal.onCommit((entries) => heard.push(...entries.map(({ data }) => data)));

  expect(journal.commit({ entries: [line('bd-a', 1)] })).toBe('ok');

  expect(onListenerError).toHaveBeenCalledWith(new Error('a listener broke'));
  expect([heard, store.lastSeq()]).toEqual([['1'], 1]);
});

test('a listener that commits is called for it after the commit before', () => {
  const { journal } = setUp();
  const heard: string[] = [];
  journal.onCommit(([first]) => {
    if (first?.data === '1') void journal.commit({ entries: [line('bd-a', 2)] });
  });
  journal.onCommit((entries) => heard.push(...entries.map(({ data }) => data)));

  void journal.commit({ entries: [line('bd-a', 1)] });

  expect(heard).toEqual(['1', '2']);
});

/** A store whose commits are carried out and answered when the test says so. */
const setUpLate = () => {
  const near = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const sent: {
    answer: () => void;
    write: () => void;
    fail: (error: Error, written: boolean) => void;
    size: number;
  }[] = [];
  const commit: Store['commit'] = (...changes) =>
    new Promise((resolve, reject) => {
      sent.push({
        size: changes.filter(({ commit: id }) => id === undefined).length,
        answer: () => resolve(near.commit(...changes)),
        write: () => void near.commit(...changes),
        fail: (error, written) => {
          if (written) atOnce(near.commit(...changes));
          reject(error);
        },
      });
    });
  const [onError, onListenerError] = [vi.fn(), vi.fn()];
  const journal = createJournal({ ...near, commit }, { node: 'n', onError, onListenerError });
  const heard: number[] = [];
  journal.onCommit((entries) => heard.push(...entries.map(({ seq }) => seq)));
  return { near, sent, journal, heard };
};

test('one refused read does not end the hearing: it goes on from the last entry', async () => {
  const near = createSqliteStore({ file: ':memory:', redact: (text) => text });
  let refusals = 0;
  const readers: EntryListener[] = [];
  const subscribe: Store['subscribe'] = (listener, from) => {
    readers.push(listener);
    if (refusals === 0) return near.subscribe(listener, from);
    refusals -= 1;
    setImmediate(() =>
      listener.failed(new DatabaseRefusedError('permission denied'), from?.after ?? 0),
    );
    return () => {};
  };
  const [onError, onListenerError] = [vi.fn(), vi.fn()];
  const journal = createJournal({ ...near, subscribe }, { node: 'n', onError, onListenerError });
  const heard: number[] = [];
  journal.onCommit((entries) => heard.push(...entries.map(({ seq }) => seq)));
  await journal.commit({ entries: [line('bd-a', 1)] });

  refusals = 1;
  readers[0]?.failed(new DatabaseRefusedError('permission denied'), 1);
  const deafness = journal.deafness();
  near.commit({ entries: [line('bd-a', 2)] });
  await vi.waitFor(() => expect(heard).toEqual([1, 2]), { timeout: 10_000 });
  await vi.waitFor(() => expect(journal.deafness()).toBeNull());
  await journal.commit({ entries: [line('bd-a', 3)] });

  expect(deafness).toContain('permission denied');
  expect(heard).toEqual([1, 2, 3]);
  expect(onListenerError).toHaveBeenCalledTimes(2);
});

test('one change that the store refuses fails alone; what shared its transaction is saved in its order', async () => {
  const { near, sent, journal, heard } = setUpLate();
  const refusal = new ChangeRefusedError('the row is too large');
  const first = journal.commit({ entries: [line('bd-a', 1)] });
  const [before, bad, after] = ['bd-b', 'bad', 'bd-c'].map((id) =>
    (async () => journal.commit({ entries: [line(id, 2)] }))(),
  );
  bad?.catch(() => {});
  sent[0]?.answer();
  await first;

  // All three, then each alone.
  sent[1]?.fail(refusal, false);
  await vi.waitFor(() => expect(sent).toHaveLength(3));
  sent[2]?.answer();
  expect(await before).toBe('ok');
  await vi.waitFor(() => expect(sent).toHaveLength(4));
  sent[3]?.fail(refusal, false);
  await expect(bad).rejects.toBe(refusal);
  await vi.waitFor(() => expect(sent).toHaveLength(5));
  sent[4]?.answer();

  expect(await after).toBe('ok');
  expect(heard).toEqual([1, 2, 3]);
  expect(near.read({ after: 0, limit: 9 }).map(({ taskId }) => taskId)).toEqual([
    'bd-a',
    'bd-b',
    'bd-c',
  ]);
});

test('while the store has not answered, what comes next waits and shares one transaction', async () => {
  const { sent, journal, heard } = setUpLate();
  const first = journal.commit({ entries: [line('bd-a', 1)] });
  const others = [2, 3].map((n) => journal.commit({ entries: [line('bd-b', n)] }));
  journal.gather({ entries: [line('bd-a', 4)] });
  expect(sent.map(({ size }) => size)).toEqual([1]);

  sent[0]?.answer();
  expect(await first).toBe('ok');
  expect(sent.map(({ size }) => size)).toEqual([1, 3]);
  sent[1]?.answer();

  expect(await Promise.all(others)).toEqual(['ok', 'ok']);
  expect(heard).toEqual([1, 2, 3, 4]);
});

test('a flush while a commit is underway waits for it, and makes no transaction of its own', async () => {
  const { sent, journal } = setUpLate();
  const first = journal.commit({ entries: [line('bd-a', 1)] });
  const flushed = journal.flush();
  let isFlushed = false;
  void Promise.resolve(flushed).then(() => {
    isFlushed = true;
  });
  await nextTurn();
  expect(isFlushed).toBe(false);

  sent[0]?.answer();

  expect([await first, await flushed]).toEqual(['ok', 'ok']);
  expect(sent.map(({ size }) => size)).toEqual([1]);
});

test('entries that were written although the commit failed are shown in their order with the next commit', async () => {
  const { sent, journal, heard } = setUpLate();
  const first = journal.commit({ entries: [line('bd-a', 1)] });
  sent[0]?.fail(new Error('the connection broke'), true);
  await expect(first).rejects.toThrow('the connection broke');

  const second = journal.commit({ entries: [line('bd-a', 2)] });
  sent[1]?.answer();
  await second;

  expect(heard).toEqual([1, 2]);
});

test('when a gathered state is stale, what its actor committed after it is stale, and it is told', async () => {
  const { near, sent, journal } = setUpLate();
  const state = (snapshot: string) => ({
    id: 'bd-a',
    taskId: 'bd-a',
    version: 1,
    pending: true,
    changedAt: 1,
    snapshot,
  });
  const guarded = (revision: number, snapshot: string) => ({
    actor: state(snapshot),
    guard: { revision, attempt: 0 },
    entries: [],
  });
  await near.commit(guarded(0, '"theirs"'));
  const onStale = vi.fn();
  journal.gather(guarded(0, '"ours"'), onStale);
  const other = journal.commit({ entries: [line('bd-b', 1)] });
  const next = journal.commit(guarded(1, '"ours, next"'));

  sent[0]?.answer();

  expect([await other, await next]).toEqual(['ok', 'stale']);
  expect(onStale).toHaveBeenCalledTimes(1);
  expect([near.actor('bd-a')?.snapshot, sent.length]).toEqual(['"theirs"', 1]);
});

const useFakeTimers = (): void => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
};

test('a commit that is not answered twice has failed after 8 s, and the next one goes', async () => {
  useFakeTimers();
  const { sent, journal } = setUpLate();
  const first = journal.commit({ entries: [line('bd-a', 1)] });
  const refused = expect(first).rejects.toThrow('the store did not answer in time');
  const second = journal.commit({ entries: [line('bd-a', 2)] });

  await vi.advanceTimersByTimeAsync(4_100);
  expect(sent).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(4_000);
  await refused;
  await nextTurn();
  sent[2]?.answer();

  expect(await second).toBe('ok');
});

test.each<[string, number, (tries: ReturnType<typeof setUpLate>['sent'][number]) => void]>([
  ['failed before it was written', 100, ({ fail }) => fail(new StoreError('no route'), false)],
  ['failed after it was written', 100, ({ fail }) => fail(new StoreError('no route'), true)],
  ['was written and never answered', 4_100, ({ write }) => write()],
  ['was never answered, and is written late', 4_100, () => {}],
])(
  'a commit that %s is tried again, and everything of it is saved once',
  async (_, pauseMs, happen) => {
    useFakeTimers();
    const { near, sent, journal, heard } = setUpLate();
    const state = { id: 'bd-a', taskId: 'bd-a', version: 1, pending: true, changedAt: 1 };
    const step = (revision: number) => ({
      actor: { ...state, snapshot: `"${revision + 1}"` },
      guard: { revision, attempt: 0 },
      entries: [line('bd-a', revision)],
    });
    journal.gather({ entries: [line('bd-a', 7)] });
    const first = journal.commit(step(0));
    const next = journal.commit(step(1));
    const [tried] = sent;

    if (tried !== undefined) happen(tried);
    await vi.advanceTimersByTimeAsync(pauseMs);
    sent[1]?.answer();
    expect(await first).toBe('ok');
    tried?.write();
    sent[2]?.answer();
    expect(await next).toBe('ok');
    tried?.write();

    const entries = near.read({ after: 0, limit: 9 });
    expect(entries.map(({ data }) => data)).toEqual(['7', '0', '1']);
    expect(near.actor('bd-a')).toMatchObject({ revision: 2, snapshot: '"2"' });
    expect(heard).toEqual([1, 2, 3]);
  },
);

test('a try that was stale is stale when its answer is asked for again', async () => {
  useFakeTimers();
  const { near, sent, journal } = setUpLate();
  const state = { id: 'bd-a', taskId: 'bd-a', version: 1, pending: true, changedAt: 1 };
  const change = (snapshot: string) => ({
    actor: { ...state, snapshot },
    guard: { revision: 0, attempt: 0 },
    entries: [line('bd-a', 1)],
  });
  await near.commit(change('"theirs"'));
  journal.gather({ entries: [line('bd-a', 2)] });
  const ours = journal.commit(change('"ours"'));

  sent[0]?.fail(new StoreError('no route'), true);
  await vi.advanceTimersByTimeAsync(100);
  sent[1]?.answer();

  expect(await ours).toBe('stale');
  expect(near.read({ after: 0, limit: 9 }).map(({ data }) => data)).toEqual(['1', '2']);
});

test('a change that is given up between two tries is not saved by the next one, all else is', async () => {
  useFakeTimers();
  const { near, sent, journal } = setUpLate();
  const state = (id: string) => ({
    actor: { id, taskId: id, version: 1, pending: true, changedAt: 1, snapshot: '{}' },
    guard: { revision: 0, attempt: 0 },
    entries: [line(id, 1)],
  });
  journal.gather(state('bd-a'));
  const other = journal.commit(state('bd-b'));
  sent[0]?.fail(new StoreError('no route'), false);
  await vi.advanceTimersByTimeAsync(50);

  journal.discard('bd-a');
  await vi.advanceTimersByTimeAsync(50);
  sent[1]?.answer();

  expect(await other).toBe('ok');
  expect([near.actor('bd-a'), near.actor('bd-b')?.revision]).toEqual([null, 1]);
});

test('a store that goes on failing is given up after four tries; what was gathered is kept', async () => {
  useFakeTimers();
  const { near, sent, journal } = setUpLate();
  journal.gather({ entries: [line('bd-a', 1)] });
  const refused = expect(journal.commit({ entries: [line('bd-a', 2)] })).rejects.toThrow(
    'no route',
  );

  for (const pauseMs of [100, 400, 1_000, 0]) {
    sent.at(-1)?.fail(new StoreError('no route'), false);
    await vi.advanceTimersByTimeAsync(pauseMs);
  }
  await refused;
  expect([sent.length, journal.problem()]).toEqual([4, 'no route']);
  const next = journal.flush();
  sent.at(-1)?.answer();

  expect(await next).toBe('ok');
  expect(near.read({ after: 0, limit: 9 }).map(({ data }) => data)).toEqual(['1']);
});
