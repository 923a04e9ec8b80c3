import { expect, test } from 'vitest';
import { createSteps } from '../../../src/actors/agent/steps.ts';
import type { ModelAnswer } from '../../../src/actors/agent/turn-steps.ts';
import { createJournal } from '../../../src/actors/journal/journal.ts';
import { type Change, ChangeRefusedError, StoreError } from '../../../src/actors/store/port.ts';
import { createSqliteStore } from '../../../src/actors/store/sqlite.ts';
import type { TaskId } from '../../../src/machines/task.ts';

/** A store whose next commits fail. */
const failing = (failures: number, error: Error = new StoreError('the disk is full')) => {
  const store = createSqliteStore({ file: ':memory:', redact: (text) => text });
  let left = failures;
  const commit = (...changes: readonly Change[]) => {
    left -= 1;
    if (left >= 0) throw error;
    return store.commit(...changes);
  };
  const journal = createJournal(
    { ...store, commit },
    { node: 'n', onError: () => {}, onListenerError: () => {} },
  );
  const fail = (count: number): void => {
    left = count;
  };
  return { store, journal, fail };
};
const key = { taskId: 'bd-a' as TaskId, attempt: 1 };

test('a step is written again when the store fails for a moment', async () => {
  const { store, journal } = failing(2);
  const steps = await createSteps(store, journal, key);

  await steps.recordRequest(1, ['do it']);

  expect((await createSteps(store, journal, key)).thought(1)?.said).toEqual(['do it']);
});

test('a step waits for the store as long as its call is wanted', async () => {
  const { store, journal } = failing(6);
  const call = new AbortController();
  const steps = await createSteps(store, journal, key, () => call.signal);

  await steps.recordRequest(1, ['do it']);

  expect((await createSteps(store, journal, key)).thought(1)?.said).toEqual(['do it']);
});

test('a step of a call that is not wanted any more fails', { tags: ['slow'] }, async () => {
  const { store, journal } = failing(1_000);
  const call = new AbortController();
  const steps = await createSteps(store, journal, key, () => call.signal);

  const kept = steps.recordRequest(1, ['do it']);
  setTimeout(() => call.abort(), 2_000);

  await expect(kept).rejects.toThrow('the disk is full');
});

test('a step that cannot be written fails', async () => {
  const { store, journal } = failing(100);
  const steps = await createSteps(store, journal, key);

  await expect(steps.recordRequest(1, [])).rejects.toThrow('the disk is full');
  expect(steps.thought(1)).toBeNull();
});

const answer: ModelAnswer = {
  ...{ type: 'answered', text: 'done', calls: [], truncated: false },
  usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
};

test('a result is saved in one transaction with what follows from it', async () => {
  const { store, journal } = failing(0);
  const steps = await createSteps(store, journal, key);
  await steps.recordRequest(1, []);
  const commits: (readonly Change[])[] = [];
  const { commit } = store;
  store.commit = (...changes) => {
    commits.push(changes);
    return commit(...changes);
  };

  await steps.recordAnswer(1, [], answer);
  await journal.commit({ entries: [], unchanged: { id: 'bd-b', revision: 0 } });

  expect(commits.map((changes) => changes.map((change) => Object.keys(change)))).toEqual([
    [
      ['entries', 'commit'],
      ['entries', 'step'],
      ['entries', 'unchanged'],
    ],
  ]);
});

test('an attempt that goes on finds a result that the store did not take at once', async () => {
  const { store, journal, fail } = failing(0);
  const steps = await createSteps(store, journal, key);
  await steps.recordRequest(1, []);
  await steps.recordAnswer(1, [], answer);
  fail(4);
  await expect(async () => await journal.flush()).rejects.toThrow('the disk is full');

  const next = await createSteps(store, journal, key, () => new AbortController().signal);

  expect(next.thought(1)?.answer).toEqual(answer);
});

test('a result waits for the store while it is known to fail', { tags: ['slow'] }, async () => {
  const { store, journal, fail } = failing(0);
  const call = new AbortController();
  const steps = await createSteps(store, journal, key, () => call.signal);
  await steps.recordRequest(1, []);
  fail(1_000);
  journal.gather({ entries: [], unchanged: { id: 'bd-b', revision: 0 } });
  await expect(async () => await journal.flush()).rejects.toThrow('the disk is full');

  const kept = steps.recordAnswer(1, [], answer);
  setTimeout(() => call.abort(), 2_000);

  await expect(kept).rejects.toThrow('the disk is full');
});

test.each([
  ['of 3,000 characters', 'x'.repeat(3_000)],
  ['with NUL', 'call\u0000_1'],
])('the key of a step is the place of its call in the turn, whatever the id: %s', async (_, id) => {
  const { store, journal } = failing(0);
  const steps = await createSteps(store, journal, key);
  const call = { id, tool: 'read', arguments: '{}' };
  const result = {
    ...{ callId: id, tool: 'read', ok: true, text: 'seen', durationMs: 1 },
    finish: null,
  };
  await steps.recordCall(1, { ...call, id: 'other' });
  await steps.recordCall(1, call);

  await steps.recordCallResult(1, call, { ...result, question: null, malformed: false });
  await journal.flush();

  const rows = await store.steps(key.taskId, key.attempt);
  expect(rows.map((row) => row.key)).toEqual(['act:1:1', 'act:1:2']);
  const again = await createSteps(store, journal, key);
  expect(again.call(1, id)?.result?.text).toBe('seen');
  expect(again.call(1, 'other')?.result).toBeNull();
});

test('a call of an earlier version is found by its id, which was its key', async () => {
  const { store, journal } = failing(0);
  const intent = JSON.stringify({ call: { id: 'call_7', tool: 'read', arguments: '{}' } });
  store.commit({ entries: [], step: { ...key, key: 'act:1:call_7', intent, result: null } });
  const steps = await createSteps(store, journal, key);

  expect(steps.keyOf(1, 'call_7')).toBe('act:1:call_7');
  expect(steps.keyOf(1, 'next')).toBe('act:1:2');
});

test('a step that the store refuses fails at once', async () => {
  const { store, journal } = failing(1_000, new ChangeRefusedError('the row is too large'));
  const steps = await createSteps(store, journal, key, () => new AbortController().signal);
  const began = performance.now();

  await expect(steps.recordRequest(1, ['do it'])).rejects.toThrow('the row is too large');

  expect(performance.now() - began).toBeLessThan(1_000);
});
