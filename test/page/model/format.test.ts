import { expect, test } from 'vitest';
import { cachedWords, dayWord, markAge } from '../../../web/model/format.ts';

test.each([
  [20_000, '20 s'],
  [60_000, '1 min'],
  [80_000, '1:20 min'],
  [125_000, '2:05 min'],
  [3_600_000, '1 h'],
  [5_400_000, '1:30 h'],
  [172_800_000, '2 d'],
])('a mark after %d ms is called %s, as no other one', (ms, expected) => {
  expect(markAge(ms)).toBe(expected);
});

test('a day is today, yesterday or its date', () => {
  const now = new Date(2026, 10, 27, 0, 30).getTime();

  expect(dayWord(now, now)).toBe('Today');
  expect(dayWord(now - 3_600_000, now)).toBe('Yesterday');
  expect(dayWord(now - 3 * 86_400_000, now)).toBe('24 Nov 2026');
});

test.each([
  [1_000, 940, 'cached 94 %'],
  [1_000, 0, ''],
  [0, 0, ''],
  [3, 1, 'cached 33 %'],
])('of %d tokens in and %d of them cached the page says "%s"', (input, cached, expected) => {
  expect(cachedWords({ input_tokens: input, cached_tokens: cached })).toBe(expected);
});
