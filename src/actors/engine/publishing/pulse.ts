import type { TaskId } from '../../../machines/task.ts';
import { type Forge, ForgeError } from '../../forge/port.ts';
import { createRequestBudget } from './request-budget.ts';

/**
 * Why a wait is over. `moved`: the pull request may be another one than it was; `same`: the forge
 * answered, and it is as it was at the last look; `task`: its task has a new entry.
 */
export type PulseNews = 'moved' | 'same' | 'task';

export interface PulseWait {
  readonly taskId: TaskId;
  readonly number: number;
  /** Epoch ms; null: it may be asked at any time. */
  readonly notBefore: number | null;
  /** Each answer of the forge ends the wait; else one that shows a change, or the longest pause. */
  readonly isEager: boolean;
  /** For a forge that has to be asked about each one. */
  readonly pauseMs: number;
}

/** One look at the forge for all pull requests that are followed. */
export interface Pulse {
  /** Rejects as the look for all failed. */
  wait(wanted: PulseWait, signal: AbortSignal): Promise<PulseNews>;
  /** A look at this one failed: it is still to be looked at. */
  forget(number: number): void;
  /** Something is about to move: pauses are short again. */
  hurry(): void;
  /** Something moved at the forge: it is asked now, at most once a second. */
  wake(): void;
  /** A task of a pull request that is followed has a new entry; it is told to who waits, now or next. */
  nudge(taskId: TaskId): void;
}

export interface PulsePorts {
  readonly forge: (signal: AbortSignal) => Promise<Pick<Forge, 'digests' | 'sent'>>;
  /** Shortest and longest pause between two looks. */
  readonly pauseMs: () => readonly [number, number];
  readonly now: () => number;
}

interface Waiter extends PulseWait {
  readonly since: number;
  dueAt: number;
  readonly end: (news: PulseNews) => void;
  readonly fail: (error: unknown) => void;
}

/** Together below 1,000 requests in each hour, also when each look needs several. */
const budgetOfHour = { atOnce: 250, perHour: 600 };
/** Pull requests that are looked at after one pulse; the others are next. */
const looksAtMost = 25;
const wakesApartMs = 1_000;
const askedForMs = 120_000;
/** A forge that knows no digests is asked for them again after so long. */
const aloneForMs = 10 * 60_000;
const rememberedAtMost = 1_000;
const longestTimerMs = 24 * 3_600_000;

const remember = <Value>(map: Map<number, Value>, number: number, value: Value): void => {
  map.delete(number);
  map.set(number, value);
  for (const [oldest] of map) if (map.size > rememberedAtMost) map.delete(oldest);
};

/**
 * Asks for the digests of all pull requests that wait, by one request; pauses double while nothing
 * moves. Where the forge has no digests, each one is due after its own pause.
 */
export const createPulse = ({ forge: find, pauseMs, now }: PulsePorts): Pulse => {
  const waiters = new Set<Waiter>();
  /** As they were at the last look at each. */
  const looked = new Map<number, string>();
  /** As they were at the last pulse. */
  const newest = new Map<number, string>();
  const followed = new Map<number, true>();
  /** Tasks with a new entry for which nobody waited. */
  const nudged = new Set<TaskId>();
  const budget = createRequestBudget(budgetOfHour, now);
  const counted = new WeakMap<object, number>();
  let pause = pauseMs()[0];
  let nextAt = 0;
  let askedAt = 0;
  let aloneUntil = 0;
  let timer: NodeJS.Timeout | null = null;
  let asking: AbortController | null = null;

  const isAlone = (): boolean => aloneUntil > now();
  const count = (forge: Pick<Forge, 'sent'>): void => {
    const before = counted.get(forge) ?? forge.sent();
    counted.set(forge, forge.sent());
    budget.spend(forge.sent() - before);
  };
  const ready = (): readonly Waiter[] =>
    [...waiters].filter(({ notBefore }) => (notBefore ?? 0) <= now());

  const schedule = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (waiters.size === 0 || asking !== null) return;
    const first = Math.min(
      ...[...waiters].map(({ notBefore, dueAt }) =>
        Math.max(notBefore ?? 0, isAlone() ? dueAt : 0),
      ),
    );
    const inMs = Math.min(Math.max(nextAt, first) - now(), longestTimerMs);
    timer = setTimeout(() => void beat(), Math.max(inMs, 0)).unref();
  };

  const endMoved = (digests: ReadonlyMap<number, string>): void => {
    let looks = 0;
    for (const waiter of ready()) {
      const digest = digests.get(waiter.number);
      // It began to wait while the forge was asked.
      if (digest === undefined) continue;
      if (digest === looked.get(waiter.number)) {
        if (waiter.isEager || now() - waiter.since >= pauseMs()[1]) waiter.end('same');
      } else if (looks < looksAtMost) {
        looks += 1;
        remember(looked, waiter.number, digest);
        waiter.end('moved');
      }
    }
  };
  const endDue = (): void => {
    for (const waiter of ready()
      .filter(({ dueAt }) => dueAt <= now())
      .slice(0, looksAtMost))
      waiter.end('moved');
  };

  const ask = async (signal: AbortSignal): Promise<void> => {
    const forge = await find(signal);
    count(forge);
    const waitMs = budget.waitMs();
    nextAt = now() + waitMs;
    if (waitMs > 0) return;
    askedAt = now();
    const numbers = [...new Set(ready().map(({ number }) => number))];
    if (numbers.length === 0) return;
    const digests = isAlone() ? null : await forge.digests(numbers, signal);
    count(forge);
    if (digests === null) {
      if (!isAlone()) aloneUntil = now() + aloneForMs;
      nextAt = now() + pauseMs()[0];
      return endDue();
    }
    const [shortest, longest] = pauseMs();
    const isMoved = [...digests].some(([number, digest]) => newest.get(number) !== digest);
    for (const [number, digest] of digests) remember(newest, number, digest);
    pause = isMoved ? shortest : Math.min(pause * 2, longest);
    nextAt = now() + pause;
    endMoved(digests);
  };

  const beat = async (): Promise<void> => {
    asking = new AbortController();
    const signal = AbortSignal.any([asking.signal, AbortSignal.timeout(askedForMs)]);
    try {
      await ask(signal);
    } catch (error) {
      const retryAt = error instanceof ForgeError ? error.retryAt : null;
      pause = Math.min(pause * 2, pauseMs()[1]);
      nextAt = Math.max(now() + pause, retryAt ?? 0);
      for (const waiter of ready()) waiter.fail(error);
    } finally {
      asking = null;
      schedule();
    }
  };

  const soonAt = (at: number): void => {
    pause = pauseMs()[0];
    nextAt = Math.min(nextAt, at);
    schedule();
  };
  const hurry = (): void => soonAt(now() + pauseMs()[0]);

  return {
    wait: (wanted, signal) =>
      new Promise((resolve, reject) => {
        const leave = (): void => {
          signal.removeEventListener('abort', abort);
          waiters.delete(waiter);
          if (waiters.size === 0 && asking === null) schedule();
        };
        const waiter: Waiter = {
          ...wanted,
          since: now(),
          dueAt: now() + wanted.pauseMs,
          end: (news) => {
            leave();
            resolve(news);
          },
          fail: (error) => {
            leave();
            reject(error);
          },
        };
        const abort = (): void => {
          waiter.fail(signal.reason);
          if (waiters.size === 0) asking?.abort();
        };
        if (signal.aborted) return reject(signal.reason);
        if (nudged.delete(wanted.taskId)) return resolve('task');
        signal.addEventListener('abort', abort, { once: true });
        waiters.add(waiter);
        const isNew = !followed.has(wanted.number);
        remember(followed, wanted.number, true);
        if (isNew) hurry();
        else schedule();
      }),
    forget: (number) => void looked.delete(number),
    hurry,
    wake: () => {
      for (const waiter of waiters) waiter.dueAt = 0;
      soonAt(Math.max(now(), askedAt + wakesApartMs));
    },
    nudge: (taskId) => {
      const waiting = [...waiters].filter((waiter) => waiter.taskId === taskId);
      for (const waiter of waiting) waiter.end('task');
      if (waiting.length === 0) nudged.add(taskId);
    },
  };
};
