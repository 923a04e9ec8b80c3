import { expect, test, vi } from 'vitest';
import { createTimerWheel } from '../../../src/actors/engine/tasks/deadlines.ts';
import { createSteadyClock } from '../../../src/actors/journal/monotonic-clock.ts';

const hour = 3_600_000;

test('a clock that is set back goes on from where it was, and one that jumps ahead is followed', () => {
  const time = { wall: 10 * hour, steady: 5.5 };
  const now = createSteadyClock({ wall: () => time.wall, steady: () => time.steady, notBefore: 0 });
  const after = (wall: number, steady: number): number => {
    time.wall += wall;
    time.steady += steady;
    return now() - 10 * hour;
  };

  expect(after(0, 0)).toBe(0);
  expect(after(1_000, 1_000)).toBe(1_000);
  expect(after(-3 * hour, 1_000)).toBe(2_000);
  expect(after(1_000, 1_000)).toBe(3_000);
  expect(after(4 * hour, 0)).toBe(hour + 2_000);
});

test('a clock that was set back between two servers goes on from the last moment of the first', () => {
  const now = createSteadyClock({ wall: () => 7 * hour, steady: () => 20, notBefore: 10 * hour });

  expect(now()).toBe(10 * hour);
});

test('a deadline that a jump of the clock has passed fires within seconds, and one without a jump at its time', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let jumped = 0;
  let passed = 0;
  const pass = (ms: number): void => {
    passed += ms;
    vi.advanceTimersByTime(ms);
  };
  const fired: string[] = [];
  const wheel = createTimerWheel(
    () => jumped + passed,
    (key) => void fired.push(key),
  );
  wheel.set('far', hour);
  wheel.set('near', 5_000);

  pass(4_999);
  expect(fired).toEqual([]);
  pass(1);
  expect(fired).toEqual(['near']);
  jumped = hour;
  pass(2_000);
  expect(fired).toEqual(['near', 'far']);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});
