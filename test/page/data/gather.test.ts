import { expect, test } from 'vitest';
import { createGather, gatheredAtMost } from '../../../web/data/gather.ts';

test('ten times as much as may wait is handed over in parts, while no timer runs', () => {
  const parts: (readonly number[])[] = [];
  const gather = createGather<number>((part) => parts.push(part));
  const all = Array.from({ length: 10 * gatheredAtMost }, (_, nth) => nth);

  for (let from = 0; from < all.length; from += 100) gather(all.slice(from, from + 100));

  expect(parts.flat()).toEqual(all);
  expect(parts.every(({ length }) => length <= gatheredAtMost)).toBe(true);
});

test('what comes within a short time is handed over together', async () => {
  const parts: (readonly number[])[] = [];
  await new Promise<void>((resolve) => {
    const gather = createGather<number>((part) => {
      parts.push(part);
      resolve();
    });
    gather([1]);
    gather([2, 3]);
  });

  expect(parts).toEqual([[1, 2, 3]]);
});
