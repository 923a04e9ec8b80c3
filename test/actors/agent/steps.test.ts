import { expect, test } from 'vitest';
import { createSteps } from '../../../src/actors/agent/steps.ts';
import { createJournal } from '../../../src/actors/journal/journal.ts';
import { type Change, StoreError } from '../../../src/actors/store/port.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import type { TaskId } from '../../../src/machines/task.ts';

/** A store whose next commits fail. */
const failing = (failures: number) => {
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  let left = failures;
  const commit = (...changes: readonly Change[]) => {
    left -= 1;
    if (left >= 0) throw new StoreError('the disk is full');
    return store.commit(...changes);
  };
  const journal = createJournal(
    { ...store, commit },
    { node: 'n', onError: () => {}, onListenerError: () => {} },
  );
  return { store, journal };
};
const key = { taskId: 'bd-a' as TaskId, attempt: 1 };

test('a step is written again when the store fails for a moment', async () => {
  const { store, journal } = failing(2);
  const steps = await createSteps(store, journal, key);

  await steps.keepPrompt('do it');

  expect((await createSteps(store, journal, key)).prompt()).toBe('do it');
});

test('a step waits for the store as long as its call is wanted', async () => {
  const { store, journal } = failing(6);
  const call = new AbortController();
  const steps = await createSteps(store, journal, key, () => call.signal);

  await steps.keepPrompt('do it');

  expect((await createSteps(store, journal, key)).prompt()).toBe('do it');
});

test('a step of a call that is not wanted any more fails', { tags: ['slow'] }, async () => {
  const { store, journal } = failing(1_000);
  const call = new AbortController();
  const steps = await createSteps(store, journal, key, () => call.signal);

  const kept = steps.keepPrompt('do it');
  setTimeout(() => call.abort(), 2_000);

  await expect(kept).rejects.toThrow('the disk is full');
});

test('a step that cannot be written fails', async () => {
  const { store, journal } = failing(100);
  const steps = await createSteps(store, journal, key);

  await expect(steps.keepPrompt('do it')).rejects.toThrow('the disk is full');
  expect(steps.prompt()).toBeNull();
});
