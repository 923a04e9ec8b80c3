import { expect, test } from 'vitest';
import type { Recording } from '../../../src/actors/journal/recording.ts';
import { framesOf, missingIn } from '../../../web/recording/recorded-source.ts';

const entry = (seq: number, type: string, data: object, base: number | null = null) => ({
  ...{ task_id: 'bd-a', task_seq: seq, seq, attempt: 1, type, at: seq * 1_000 },
  ...{ data: JSON.stringify(data), cause: null, base, previous: '', hash: null },
});
const gap = (why: 'size' | 'secret' | 'removed', through_seq: number, entries: number) => ({
  ...{ why, entries, transitions: 0, bytes: 2_500_000, through_seq, hash: null },
});
const recordingOf = (items: Recording['items'], task: object = {}) =>
  ({ items, task }) as unknown as Recording;

test('a shortened snapshot gets the fields that are as in an earlier one', () => {
  const whole = { machine: 'task', value: 'a', task: { title: 'T', labels: ['x'], attempt: 0 } };
  const short = { machine: 'task', value: 'b', task: { title: {}, labels: {}, attempt: 1 } };

  const frames = framesOf([
    entry(1, 'snapshot', whole),
    gap('size', 2, 1),
    entry(3, 'log', { message: 'm' }),
    entry(4, 'snapshot', short, 1),
  ]);

  expect(frames.map(({ seq, timestamp }) => [seq, timestamp])).toEqual([
    [1, '1970-01-01T00:00:01.000Z'],
    [3, '1970-01-01T00:00:03.000Z'],
    [4, '1970-01-01T00:00:04.000Z'],
  ]);
  expect(frames[2]?.data).toEqual({
    ...short,
    task: { title: 'T', labels: ['x'], attempt: 1 },
  });
});

test('a recording says what it does not hold, in a sentence for each part', () => {
  expect(missingIn(recordingOf([entry(1, 'log', {})]))).toBeNull();
  expect(missingIn(recordingOf([gap('removed', 9, 9), entry(10, 'log', {})]))).toBe(
    'The entries up to 9 had been removed from the journal before the export.',
  );
  expect(missingIn(recordingOf([gap('size', 1_204, 1_200), gap('secret', 1_205, 1)]))).toBe(
    '1,200 entries up to 1204 are left out, 2.5 MB: the file would be too large. 1 entry up to 1205 is left out: a secret is in it.',
  );
  const many = Array.from({ length: 8 }, (_, n) => gap('secret', n + 1, 1));
  expect(missingIn(recordingOf(many))).toMatch(/And 3 more parts\.$/);
  expect(missingIn(recordingOf([], { history_removed: {} }))).toBe(
    'The journal had been removed before the export.',
  );
});
