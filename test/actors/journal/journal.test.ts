import { expect, test, vi } from 'vitest';
import { createJournal } from '../../../src/actors/journal/journal.ts';
import type { Entry, NewEntry } from '../../../src/actors/store/port.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';

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
  const [onError, onListenerError] = [vi.fn(), vi.fn()];
  return { store, onError, onListenerError, journal: createJournal(store, { onError, onListenerError }) };
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

test('progress that cannot be committed is kept, said, and committed by itself later', async () => {
  const { store, journal, onError } = setUp();
  const commit = vi.spyOn(store, 'commit').mockImplementationOnce(() => {
    throw new Error('disk full');
  });
  const told = new Promise((resolve) => onError.mockImplementation(resolve));
  journal.append(line('bd-a', 1));

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

  expect(journal.commit({ actor: actor(false), entries: [line('bd-a', 2)] }).map(({ seq }) => seq)).toEqual([1, 2]);
  expect(store.actor('bd-a')?.pending).toBe(false);

  const failing = vi.spyOn(store, 'commit').mockImplementation(() => {
    throw new Error('disk full');
  });
  journal.gather({ actor: actor(true), entries: [line('bd-a', 3)] });
  const large = { ...line('bd-a', 4), data: JSON.stringify('x'.repeat(1024 * 1024)) };
  for (let n = 0; n < 20; n += 1) journal.append(large);
  await new Promise((resolve) => onError.mockImplementation(resolve));
  failing.mockRestore();
  journal.flush();
  expect(store.actor('bd-a')?.pending).toBe(true);
  expect(store.lastSeq()).toBe(2 + 1 + 15);
});

test('the gathered states of a failed actor are dropped, its progress is kept', () => {
  const { store, journal } = setUp();
  const actor = { id: 'bd-a', taskId: 'bd-a', version: 1, pending: true, changedAt: 1, snapshot: '{}' };
  journal.gather({ actor, entries: [line('bd-a', 1)] });
  journal.append(line('bd-a', 2));

  journal.discard('bd-a');
  journal.flush();

  expect(store.actor('bd-a')).toBeNull();
  expect(store.read({ after: 0, limit: 9 }).map(({ data }) => data)).toEqual(['2']);
});

test('what a listener throws is reported; the commit stands, and the other listeners hear of it', () => {
  const { store, journal, onListenerError } = setUp();
  const heard: string[] = [];
  journal.onCommit(() => {
    throw new Error('a listener broke');
  });
  journal.onCommit((entries) => heard.push(...entries.map(({ data }) => data)));

  expect(journal.commit({ entries: [line('bd-a', 1)] })).toHaveLength(1);

  expect(onListenerError).toHaveBeenCalledWith(new Error('a listener broke'));
  expect([heard, store.lastSeq()]).toEqual([['1'], 1]);
});

test('a listener that commits is called for it after the commit before', () => {
  const { journal } = setUp();
  const heard: string[] = [];
  journal.onCommit(([first]) => {
    if (first?.data === '1') journal.commit({ entries: [line('bd-a', 2)] });
  });
  journal.onCommit((entries) => heard.push(...entries.map(({ data }) => data)));

  journal.commit({ entries: [line('bd-a', 1)] });

  expect(heard).toEqual(['1', '2']);
});
