import { expect, test } from 'vitest';
import { callNeedsApproval } from '../../../src/actors/agent/delegate.ts';
import { createLiveRuns, type EndedRun } from '../../../src/actors/agent/live-runs.ts';
import { type AttemptKey, attemptKey, type TaskId } from '../../../src/machines/task.ts';

const spent = {
  ...{ modelCalls: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, cachedTokens: 0 },
  costUsd: null,
};
const ended: EndedRun = { kind: 'done', summary: 'over', artifacts: [], spent };
const keyOf = (number: number): AttemptKey => attemptKey(`bd-${number}` as TaskId, 1);
const never = new AbortController().signal;

/** Assistants that ask once and end when they are answered or stopped. */
const asking = (count: number) => {
  const answers: Record<string, boolean> = {};
  const runs = createLiveRuns(() => {});
  const keys = Array.from({ length: count }, (_, number) => keyOf(number));
  for (const key of keys)
    runs.begin(key, ({ askPermission }) => ({
      takeSpent: () => spent,
      end: askPermission({ callId: '1', tool: 'edit', arguments: '{}' }).then((allowed) => {
        answers[key] = allowed;
        return ended;
      }),
    }));
  return { runs, keys, answers };
};

test('a ninth assistant that waits for a person ends the one that waits longest', async () => {
  const { runs, keys, answers } = asking(9);

  for (const key of keys) expect((await runs.next(key, never)).kind).toBe('asks');
  await new Promise((resolve) => setImmediate(resolve));

  expect(keys.filter((key) => !runs.has(key))).toEqual([keyOf(0)]);
  expect(answers).toEqual({ [keyOf(0)]: false });
});

test('each answer goes to its own assistant', async () => {
  const { runs, keys, answers } = asking(2);
  for (const key of keys) await runs.next(key, never);

  runs.answer(keyOf(1), true);

  expect(await runs.next(keyOf(1), never)).toEqual(ended);
  expect(answers).toEqual({ [keyOf(1)]: true });
  expect(keys.filter((key) => runs.has(key))).toEqual([keyOf(0)]);
});

test('an abort ends an assistant that asks', async () => {
  const { runs, answers } = asking(1);
  const abort = new AbortController();
  await runs.next(keyOf(0), never);
  const last = runs.next(keyOf(0), abort.signal);

  abort.abort();

  expect(await last).toEqual(ended);
  expect(answers).toEqual({ [keyOf(0)]: false });
  expect(runs.has(keyOf(0))).toBe(false);
});

test.each([
  ['edit', ['write'], true],
  ['edit', ['bash'], false],
  ['bash', ['bash'], true],
  ['delete', ['bash'], true],
  ['read', ['bash', 'write'], false],
  ['think', ['bash'], false],
  ['fetch', ['read'], true],
  ['other', ['bash'], true],
  ['__proto__', ['bash'], true],
  ['constructor', ['bash'], true],
  ['other', [], false],
])('a call of %s with approvals %j needs one: %s', (tool, approvals, needed) => {
  expect(callNeedsApproval(tool, approvals)).toBe(needed);
});
