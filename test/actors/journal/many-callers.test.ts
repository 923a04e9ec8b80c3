import { expect, test } from 'vitest';
import { createJournal } from '../../../src/actors/journal/journal.ts';
import type { Change, NewEntry } from '../../../src/actors/store/port.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';

const noted = (n: number): Change => {
  const entry: NewEntry = {
    taskId: `bd-${n}`,
    attempt: 0,
    type: 'log',
    at: n,
    data: '{}',
    cause: null,
  };
  return { entries: [entry] };
};
const fail = (error: unknown): never => {
  throw error;
};

const open = (refused: (sizes: readonly number[]) => boolean = () => false) => {
  const near = createSqliteStore({ file: ':memory:', redact: (text) => text });
  const sizes: number[] = [];
  const commit: typeof near.commit = (...changes) => {
    sizes.push(changes.filter(({ commit: id }) => id === undefined).length);
    if (refused(sizes)) throw new Error('the disk is full');
    return near.commit(...changes);
  };
  const journal = createJournal(
    { ...near, commit },
    { node: 'n', onError: () => {}, onListenerError: fail },
  );
  const times = (): readonly number[] => near.read({ after: 0, limit: 1_000 }).map(({ at }) => at);
  return { journal, sizes, times };
};

test('64 who commit in one turn of the event loop share few transactions, in their order', async () => {
  const { journal, sizes, times } = open();

  const answers = await Promise.all(Array.from({ length: 64 }, (_, n) => journal.commit(noted(n))));

  expect(sizes).toEqual([1, 1, 1, 1, 60]);
  expect(times()).toEqual(Array.from({ length: 64 }, (_, n) => n));
  expect(new Set(answers)).toEqual(new Set(['ok']));
});

test('a commit in a turn of its own is carried out at once', async () => {
  const { journal, sizes } = open();
  for (let n = 0; n < 10; n += 1) {
    expect(journal.commit(noted(n))).toBe('ok');
    await new Promise(setImmediate);
  }
  expect(sizes).toEqual(Array.from({ length: 10 }, () => 1));
});

test('when the shared transaction fails, each of its callers hears of it, and the next turn commits again', async () => {
  const { journal, times } = open((sizes) => sizes.length === 5);

  const all = await Promise.allSettled(
    Array.from({ length: 10 }, async (_, n) => journal.commit(noted(n))),
  );
  const next = await journal.commit(noted(10));

  expect(all.map(({ status }) => status)).toEqual([
    ...Array.from({ length: 4 }, () => 'fulfilled'),
    ...Array.from({ length: 6 }, () => 'rejected'),
  ]);
  expect(next).toBe('ok');
  expect(times()).toEqual([0, 1, 2, 3, 10]);
});
