import { expect, test, vi } from 'vitest';
import { createTimerWheel } from '../../../src/actors/engine/tasks/deadlines.ts';

test('of many deadlines those that are due fire once, in the order of their times, when they were not moved', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let now = 0;
  const fired: string[] = [];
  const wheel = createTimerWheel(
    () => now,
    (key) => void fired.push(key),
  );
  const pass = (ms: number): void => {
    now += ms;
    vi.advanceTimersByTime(ms);
  };
  for (let n = 2_000; n > 0; n -= 1) wheel.set(`bd-${n}`, 10_000 + n);
  wheel.set('bd-3', 5_000);
  wheel.set('bd-2', null);
  wheel.set('bd-1', 60_000);
  wheel.set('bd-0', 10_004);

  pass(10_000);
  expect(fired).toEqual(['bd-3']);
  pass(10);
  expect(fired.slice(1)).toEqual(['bd-0', 'bd-4', 'bd-5', 'bd-6', 'bd-7', 'bd-8', 'bd-9', 'bd-10']);
  pass(1_990);
  expect(fired).toHaveLength(1_999);
  pass(50_000);

  vi.useRealTimers();
  expect(fired.slice(1_999)).toEqual(['bd-1']);
});
