import { expect, test } from 'vitest';
import type { Frame } from '../../../web/data/frame.ts';
import { createNewest, keptAtMost } from '../../../web/data/newest.ts';

const frame = (seq: number, text = 'a line'): Frame => ({
  ...{ type: 'log', task_id: 'bd-a', attempt: 1, timestamp: '2026-01-01T00:00:00.000Z' },
  ...{ seq, data: { text } },
});

const charactersOf = (frames: readonly Frame[]): number =>
  frames.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0);

/** Adds a hundred at a time. @returns what is kept in the end, and the largest size at any time */
const feed = (count: number, text: string, sizeOf: (frames: readonly Frame[]) => number) => {
  const add = createNewest();
  let most = 0;
  let kept = add([]);
  for (let from = 1; from <= count; from += 100) {
    kept = add(Array.from({ length: 100 }, (_, nth) => frame(from + nth, text)));
    most = Math.max(most, sizeOf(kept.frames));
  }
  return { kept, most };
};

test('of ten times as many entries as it keeps, the page has the newest', () => {
  const count = 10 * keptAtMost.frames;

  const { kept, most } = feed(count, 'a line', ({ length }) => length);

  expect(most).toBe(keptAtMost.frames);
  expect(kept).toMatchObject({ isCut: true });
  const seqs = kept.frames.map(({ seq }) => seq);
  expect(seqs).toEqual(Array.from(seqs, (_, nth) => count - seqs.length + 1 + nth));
});

test('of ten times as much text as it keeps, the page has the newest', () => {
  const text = 'x'.repeat(60_000);
  const count = Math.ceil((10 * keptAtMost.characters) / text.length / 100) * 100;

  const { kept, most } = feed(count, text, charactersOf);

  expect(most).toBeLessThanOrEqual(keptAtMost.characters);
  expect(kept.frames.at(-1)?.seq).toBe(count);
  expect(charactersOf(kept.frames)).toBeGreaterThan(keptAtMost.characters / 2);
});

test('an entry that is larger than all that is kept stays alone', () => {
  const add = createNewest();
  add([frame(1), frame(2)]);

  const { frames } = add([frame(3, 'x'.repeat(keptAtMost.characters + 1))]);

  expect(frames.map(({ seq }) => seq)).toEqual([3]);
});

test('entries that came before are not kept twice, and nothing is said to be left out', () => {
  const add = createNewest();
  add([frame(1), frame(2)]);

  const { frames, isCut } = add([frame(2), frame(3)]);

  expect(frames.map(({ seq }) => seq)).toEqual([1, 2, 3]);
  expect(isCut).toBe(false);
});
