import { describe, expect, test, vi } from 'vitest';
import {
  createPulse,
  type PulseNews,
  type PulseWait,
} from '../../../../src/actors/engine/publishing/pulse.ts';
import { createRequestBudget } from '../../../../src/actors/engine/publishing/request-budget.ts';
import { ForgeError } from '../../../../src/actors/forge/port.ts';
import type { TaskId } from '../../../../src/machines/task.ts';

const hour = 3_600_000;

/** A forge by a simulated clock, and pull requests that are looked at as the engine does. */
const open = (count: number, looksCost = 4) => {
  const digests = new Map<number, string>();
  const asked: number[] = [];
  let isThere = true;
  let failure: Error | null = null;
  let sent = 0;
  const looks: number[] = [];
  const news: { number: number; news: PulseNews | Error }[] = [];
  const forge = {
    sent: () => sent,
    digests: async (numbers: readonly number[]) => {
      sent += 1;
      asked.push(Date.now());
      await new Promise((resolve) => setTimeout(resolve, 20));
      if (failure !== null) throw failure;
      return isThere ? new Map(numbers.map((each) => [each, digests.get(each) ?? 'first'])) : null;
    },
  };
  const pulse = createPulse({
    forge: async () => forge,
    pauseMs: () => [10_000, 300_000],
    now: Date.now,
  });
  const ending = new AbortController();
  const taskOf = (number: number) => `bd-${number}` as TaskId;
  const follow = async (number: number): Promise<void> => {
    const signal = AbortSignal.any([ending.signal]);
    let pauseMs = 10_000;
    let notBefore: number | null = null;
    while (!ending.signal.aborted) {
      const isEager = notBefore !== null;
      const wanted: PulseWait = { taskId: taskOf(number), number, notBefore, isEager, pauseMs };
      const found: PulseNews | Error = await pulse
        .wait(wanted, signal)
        .catch((error: Error) => error);
      news.push({ number, news: found });
      notBefore = found instanceof ForgeError ? found.retryAt : null;
      if (found !== 'moved') continue;
      pauseMs = Math.min(2 * pauseMs, 300_000);
      sent += looksCost;
      looks.push(number);
    }
  };
  for (let number = 1; number <= count; number += 1) void follow(number);
  return {
    ...{ pulse, asked, looks, news, digests, taskOf, sent: () => sent },
    fail: (error: Error | null) => {
      failure = error;
    },
    goAway: () => {
      isThere = false;
    },
    end: () => ending.abort(),
  };
};

const inTime = async (
  count: number,
  work: (world: ReturnType<typeof open>) => Promise<void>,
  looksCost?: number,
): Promise<void> => {
  vi.useFakeTimers({ now: Date.parse('2026-11-01T00:00:00Z') });
  const world = open(count, looksCost);
  try {
    await work(world);
  } finally {
    world.end();
    vi.useRealTimers();
  }
};
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe('the pulse', () => {
  test('of 50 idle pull requests asks less and less, and for all of them at once', () =>
    inTime(50, async ({ looks, asked, sent }) => {
      await pass(hour);
      const [looksBefore, sentBefore] = [looks.length, sent()];

      await pass(hour);

      expect([looksBefore, looks.length]).toEqual([50, 50]);
      expect(asked.slice(0, 6).map((at, n) => at - (asked[n - 1] ?? at))).toEqual([
        ...[0, 10_020, 20_020, 40_020, 80_020, 160_020],
      ]);
      expect(sent() - sentBefore).toBeLessThanOrEqual(12);
    }));

  test('has pauses that are short again when something moves, or is wanted', () =>
    inTime(3, async ({ looks, asked, digests, pulse }) => {
      await pass(hour);
      const before = asked.length;
      digests.set(2, 'second');
      await pass(hour);
      const [seenAt = 0, nextAt = 0] = asked.slice(before);

      pulse.hurry();
      await pass(10_100);

      expect([looks, nextAt - seenAt]).toEqual([[1, 2, 3, 2], 10_020]);
      expect(Date.now() - (asked.at(-1) ?? 0)).toBeLessThan(1_000);
    }));

  test('asks at once when it is woken, at most once a second', () =>
    inTime(3, async ({ asked, digests, looks, pulse }) => {
      await pass(hour);
      const before = asked.length;
      digests.set(1, 'second');

      for (let n = 0; n < 50; n += 1) {
        pulse.wake();
        await pass(100);
      }

      expect(asked.length - before).toBeLessThanOrEqual(6);
      expect(looks.slice(3)).toEqual([1]);
    }));

  test.each([4, 8])('costs less than 1,000 requests in each hour, looks of %i', (looksCost) =>
    inTime(
      50,
      async ({ digests, sent }) => {
        const atMinute: number[] = [];
        for (let minute = 0; minute < 240; minute += 1) {
          for (let number = 1; number <= 50; number += 1) digests.set(number, `at ${minute}`);
          await pass(60_000);
          atMinute.push(sent());
        }

        const hours = atMinute.slice(60).map((at, n) => at - (atMinute[n] ?? 0));
        expect(Math.max(...hours)).toBeLessThan(1_000);
        expect(Math.min(...hours)).toBeGreaterThan(300);
      },
      looksCost,
    ),
  );

  test('of a forge without digests lets each be looked at by itself, within the same bound', () =>
    inTime(50, async ({ goAway, looks, asked, sent }) => {
      goAway();
      await pass(hour);

      expect(sent()).toBeLessThan(1_000);
      expect(new Set(looks).size).toBe(50);
      expect(asked.length).toBeLessThanOrEqual(7);
    }));

  test('tells a limit to all of them by one request, and waits until it ends', () =>
    inTime(5, async ({ fail, asked, news, looks }) => {
      await pass(60_000);
      const before = asked.length;
      const limit = new ForgeError('limit', 'until then', Date.now() + hour);
      fail(limit);

      await pass(hour - 60_000);
      fail(null);
      const during = asked.length - before;
      await pass(61_000);

      expect(during).toBe(1);
      expect(news.filter((each) => each.news === limit)).toHaveLength(5);
      expect(asked.length - before).toBeGreaterThan(1);
      // Nothing moved meanwhile.
      expect(looks).toHaveLength(5);
      expect(news.at(-1)?.news).toBe('same');
    }));

  test('fails less and less often while the forge is away', () =>
    inTime(2, async ({ fail, asked }) => {
      fail(new ForgeError('away', 'no answer'));
      await pass(hour);

      expect(asked.length).toBeLessThanOrEqual(18);
    }));

  test('looks again at one whose look failed', () =>
    inTime(2, async ({ pulse, looks }) => {
      await pass(60_000);
      pulse.forget(1);
      await pass(300_000);

      expect(looks).toEqual([1, 2, 1]);
    }));

  test('tells of an entry of the task without a request', () =>
    inTime(2, async ({ pulse, news, sent, taskOf }) => {
      await pass(60_000);
      const [before, sentBefore] = [news.length, sent()];

      pulse.nudge(taskOf(2));
      await pass(0);

      expect(news.slice(before)).toEqual([{ number: 2, news: 'task' }]);
      expect(sent()).toBe(sentBefore);
    }));

  test('asks nothing when nobody waits any more', () =>
    inTime(2, async ({ end, asked }) => {
      await pass(60_000);
      end();
      await pass(0);
      const before = asked.length;
      await pass(hour);

      expect([asked.length - before, vi.getTimerCount()]).toEqual([0, 0]);
    }));
});

test('a budget may be overdrawn, and comes back with time', () => {
  let now = 0;
  const budget = createRequestBudget({ atOnce: 10, perHour: 60 }, () => now);

  budget.spend(12);
  const waitMs = budget.waitMs();
  now += waitMs;
  const then = budget.waitMs();
  now += 24 * hour;
  budget.spend(10);

  expect([waitMs, then, budget.waitMs()]).toEqual([3 * 60_000, 0, 60_000]);
});
