import { expect, test, vi } from 'vitest';
import { createJournal } from '../../src/actors/journal.ts';
import type { Entry, NewEntry } from '../../src/actors/store/port.ts';
import { createSqliteStore } from '../../src/actors/store/sqlite.ts';

const line = (taskId: string, n: number): NewEntry => ({
  taskId,
  attempt: 1,
  type: 'log',
  at: n,
  data: JSON.stringify(n),
  cause: null,
});

const setUp = () => {
  const store = createSqliteStore({ file: ':memory:' });
  const onError = vi.fn();
  return { store, onError, journal: createJournal(store, { onError }) };
};

const take = async (entries: AsyncIterable<Entry>, count: number): Promise<string[]> => {
  const taken: string[] = [];
  for await (const { data } of entries) {
    taken.push(data);
    if (taken.length === count) break;
  }
  return taken;
};

test('gathered progress stands before the transition that follows it, in one commit', () => {
  const { store, journal } = setUp();
  journal.append(line('bd-a', 1));
  journal.append(line('bd-a', 2));

  const committed = journal.commit({ entries: [line('bd-a', 3)] });

  expect(committed.map(({ data }) => data)).toEqual(['1', '2', '3']);
  expect(store.lastSeq()).toBe(3);
});

test('gathered progress is committed by itself after a moment', async () => {
  const { store, journal } = setUp();
  const told = new Promise<readonly Entry[]>((resolve) => journal.onCommit(resolve));

  journal.append(line('bd-a', 1));

  expect(store.lastSeq()).toBe(0);
  expect(await told).toHaveLength(1);
});

test('a follower gets what was there and what comes, without gap or duplicate', async () => {
  const { journal } = setUp();
  const stop = new AbortController();
  for (let n = 1; n <= 600; n += 1) journal.commit({ entries: [line('bd-a', n)] });

  const taken = take(journal.follow({ taskId: 'bd-a', after: 0, signal: stop.signal }), 900);
  for (let n = 601; n <= 900; n += 1) {
    journal.commit({ entries: [line('bd-b', 0), line('bd-a', n)] });
    if (n % 50 === 0) await new Promise(setImmediate);
  }

  expect(await taken).toEqual(Array.from({ length: 900 }, (_, index) => String(index + 1)));
});

test('early and late followers all get everything', async () => {
  const { journal } = setUp();
  const stop = new AbortController();
  const early = take(journal.follow({ taskId: 'bd-a', after: 0, signal: stop.signal }), 3);
  journal.commit({ entries: [line('bd-a', 1), line('bd-a', 2)] });
  const middle = take(journal.follow({ taskId: 'bd-a', after: 0, signal: stop.signal }), 3);
  journal.commit({ entries: [line('bd-a', 3)] });
  const late = take(journal.follow({ taskId: 'bd-a', after: 0, signal: stop.signal }), 3);

  expect(await Promise.all([early, middle, late])).toEqual([
    ['1', '2', '3'],
    ['1', '2', '3'],
    ['1', '2', '3'],
  ]);
});

test('a follower that waits ends with its signal', async () => {
  const { journal } = setUp();
  const stop = new AbortController();
  const taken = take(journal.follow({ after: 0, signal: stop.signal }), 1);

  stop.abort();

  expect(await taken).toEqual([]);
});

test('progress that cannot be committed is kept, said, and committed later', async () => {
  const { store, journal, onError } = setUp();
  const commit = vi.spyOn(store, 'commit').mockImplementationOnce(() => {
    throw new Error('disk full');
  });
  const told = new Promise((resolve) => onError.mockImplementation(resolve));
  journal.append(line('bd-a', 1));

  expect(await told).toEqual(new Error('disk full'));
  journal.flush();

  expect(commit).toHaveBeenCalledTimes(2);
  expect(store.lastSeq()).toBe(1);
});
