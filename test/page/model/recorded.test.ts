import { expect, test } from 'vitest';
import type { Recording } from '../../../src/actors/journal/replay/recording.ts';
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

test('a recording says what it does not hold, in a sentence for each reason', () => {
  expect(missingIn(recordingOf([entry(1, 'log', {})]))).toBeNull();
  expect(missingIn(recordingOf([gap('removed', 9, 9), entry(10, 'log', {})]))).toBe(
    'The entries up to 9 had been removed from the journal before the export.',
  );
  const cut = [gap('size', 1_204, 1_200), gap('secret', 1_205, 1), gap('size', 1_300, 4)];
  expect(missingIn(recordingOf(cut))).toBe(
    '1,204 entries (5.0 MB) left out: the file would be too large. 1 entry left out: a secret would be in the file.',
  );
  expect(missingIn(recordingOf([], { history_removed: {} }))).toBe(
    'The journal had been removed before the export.',
  );
});
