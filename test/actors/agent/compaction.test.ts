import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  applyCompaction,
  boundedSummary,
  isShorter,
  planCompaction,
} from '../../../src/actors/agent/compaction.ts';
import type { ModelMessage } from '../../../src/actors/model/port.ts';

const user = (text: string): ModelMessage => ({ role: 'user', text });
/** A turn: messages before an answer, the answer, and the results of its calls. */
const turnOf = (
  said: readonly string[],
  lengths: readonly number[],
  number: number,
): readonly ModelMessage[] => {
  const calls = lengths.map((_, index) => ({
    id: `call_${number}_${index}`,
    tool: 'read',
    arguments: '{}',
  }));
  return [
    ...said.map(user),
    { role: 'assistant', text: 'so', calls },
    ...calls.map(
      ({ id, tool }, index): ModelMessage => ({
        role: 'tool',
        callId: id,
        tool,
        ok: true,
        text: 'x'.repeat(lengths[index] ?? 0),
      }),
    ),
  ];
};

const conversations = fc
  .record({
    first: fc.integer({ min: 0, max: 3_000 }),
    turns: fc.array(
      fc.record({
        said: fc.array(fc.constant('go on'), { maxLength: 2 }),
        lengths: fc.array(fc.integer({ min: 0, max: 6_000 }), { maxLength: 4 }),
      }),
      { maxLength: 12 },
    ),
    said: fc.array(fc.constant('and now?'), { maxLength: 2 }),
  })
  .map(({ first, turns, said }): readonly ModelMessage[] => [
    user('t'.repeat(first)),
    ...turns.flatMap((turn, number) => turnOf(turn.said, turn.lengths, number)),
    ...said.map(user),
  ]);
const windows = fc.option(fc.integer({ min: 200, max: 8_000 }));

const callsIn = (messages: readonly ModelMessage[]): readonly string[] =>
  messages.flatMap((message) =>
    message.role === 'assistant' ? message.calls.map(({ id }) => id) : [],
  );
const resultsIn = (messages: readonly ModelMessage[]): readonly string[] =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.callId] : []));
const without = (message: ModelMessage): ModelMessage => ({ ...message, text: '' });

test('a compaction never separates a call from its result', () => {
  fc.assert(
    fc.property(conversations, windows, (messages, window) => {
      const plan = planCompaction(messages, window);
      if (plan === null) return;
      const after = applyCompaction(messages, {
        summary: plan.older.length > 0 ? 'short' : null,
        ...plan,
      });

      expect(resultsIn(after)).toEqual(callsIn(after));
      expect(resultsIn(plan.older)).toEqual(callsIn(plan.older));
      expect(after[0]).toEqual(messages[0]);
      // The kept part is the end of the conversation, in order and, where it fits, unchanged.
      const kept = messages.slice(plan.from);
      const ending = after.slice(after.length - kept.length);
      if (plan.resultBytes === null) expect(ending).toEqual(kept);
      else expect(ending.map(without)).toEqual(kept.map(without));
      // Nothing is lost between the summarised and the kept part.
      if (plan.older.length > 0) expect([...plan.older, ...kept]).toEqual(messages);
      else expect(plan.from).toBe(1);
    }),
    { numRuns: 500 },
  );
});

test('the last turn and later messages are kept, and only messages that the model has read are summarised', () => {
  fc.assert(
    fc.property(conversations, windows, (messages, window) => {
      const plan = planCompaction(messages, window);
      const answer = messages.findLastIndex(({ role }) => role === 'assistant');
      if (plan === null || answer < 0) return;

      expect(plan.from).toBeLessThanOrEqual(answer);
      expect(plan.older.length).toBeLessThanOrEqual(answer);
    }),
    { numRuns: 500 },
  );
});

test('the compacted conversation fits into half of the window, as far as cutting results allows', () => {
  const messages = [
    user('a task'),
    ...Array.from({ length: 9 }, (_, number) => turnOf([], [2_000], number)).flat(),
  ];
  const plan = planCompaction(messages, 6_000);
  const summary = boundedSummary('s'.repeat(100_000));

  const after = applyCompaction(messages, {
    summary: summary.slice(0, 2_000),
    from: plan?.from ?? 0,
    resultBytes: null,
  });

  expect(JSON.stringify(after).length).toBeLessThanOrEqual((6_000 * 3) / 2);
  expect(resultsIn(after)).toEqual(['call_6_0', 'call_7_0', 'call_8_0']);
  expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(16_000);
});

test('a first message alone cannot be compacted, and a summary that is longer than the dropped part is not used', () => {
  const short = [user('a task'), ...turnOf([], [10], 1), ...turnOf([], [10], 2)];

  expect(planCompaction([user('a task')], 100)).toBeNull();
  expect(planCompaction([user('a task'), user('and this')], 100)).toBeNull();
  expect(isShorter(short, { summary: 'w'.repeat(1_000), from: 3, resultBytes: null })).toBe(false);
  expect(isShorter(short, { summary: null, from: 3, resultBytes: null })).toBe(true);
});
