import {
  type Compare,
  emptyList,
  type SortedList,
  withItem,
  withoutItem,
} from '../../../machines/supervisor/sorted-list.ts';

/** Absolute deadlines (epoch ms), each with its own key; one timer waits for the earliest. */
export interface TimerWheel {
  /** Sets, moves or (null) clears a deadline (epoch ms). */
  set(key: string, at: number | null): void;
  stop(): void;
}

/**
 * Timers miss jumps of the time of day and the sleep of the machine, so deadlines are checked at
 * least this often.
 */
const lookAgainMs = 2_000;

interface Deadline {
  readonly key: string;
  readonly at: number;
}

const byTime: Compare<Deadline> = (one, other) =>
  one.at - other.at || (one.key < other.key ? -1 : one.key > other.key ? 1 : 0);

export const createTimerWheel = (now: () => number, fire: (key: string) => void): TimerWheel => {
  const deadlines = new Map<string, Deadline>();
  let inOrder: SortedList<Deadline> = emptyList;
  let timer: NodeJS.Timeout | null = null;
  let ringsAt = Number.POSITIVE_INFINITY;

  const first = (): Deadline | undefined => inOrder.parts[0]?.[0];
  const remove = (key: string): void => {
    const deadline = deadlines.get(key);
    if (deadline === undefined) return;
    deadlines.delete(key);
    inOrder = withoutItem(inOrder, deadline, byTime);
  };
  const takeDue = (): readonly string[] => {
    const due: string[] = [];
    for (let next = first(); next !== undefined && next.at <= now(); next = first()) {
      remove(next.key);
      due.push(next.key);
    }
    return due;
  };
  const clear = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    ringsAt = Number.POSITIVE_INFINITY;
  };
  /** Rings for a cleared deadline too. It then only waits for the next one. */
  const ringBy = (at: number): void => {
    if (at >= ringsAt) return;
    clear();
    const pauseMs = Math.min(Math.max(0, at - now()), lookAgainMs);
    ringsAt = now() + pauseMs;
    timer = setTimeout(ring, pauseMs).unref();
  };
  const ring = (): void => {
    clear();
    for (const key of takeDue()) fire(key);
    ringBy(first()?.at ?? Number.POSITIVE_INFINITY);
  };

  return {
    set: (key, at) => {
      remove(key);
      if (at === null) return;
      const deadline = { key, at };
      deadlines.set(key, deadline);
      inOrder = withItem(inOrder, deadline, byTime);
      ringBy(at);
    },
    stop: () => {
      deadlines.clear();
      inOrder = emptyList;
      clear();
    },
  };
};

const firstRetryMs = 5_000;
const longestRetryMs = 10 * 60_000;

export interface RestoreRetries<Id extends string> {
  /** The pause doubles with each failure. */
  later(id: Id): void;
  forget(id: Id): void;
  /** Those that wait for their next try. */
  waiting(): ReadonlySet<Id>;
  stop(): void;
}

/** Calls `restore` again for tasks or workflows that could not be restored. */
export const createRestoreRetries = <Id extends string>(
  now: () => number,
  restore: (id: Id) => void,
): RestoreRetries<Id> => {
  const failures = new Map<Id, number>();
  const wheel = createTimerWheel(now, (id) => restore(id as Id));
  let stopped = false;
  return {
    later: (id) => {
      if (stopped) return;
      const count = failures.get(id) ?? 0;
      failures.set(id, count + 1);
      wheel.set(id, now() + Math.min(firstRetryMs * 2 ** count, longestRetryMs));
    },
    forget: (id) => void failures.delete(id),
    waiting: () => new Set(failures.keys()),
    stop: () => {
      stopped = true;
      wheel.stop();
    },
  };
};
