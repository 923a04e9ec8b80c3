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

const earliest = (deadlines: ReadonlyMap<string, number>): number => {
  let first = Number.POSITIVE_INFINITY;
  for (const at of deadlines.values()) first = Math.min(first, at);
  return first;
};

export const createTimerWheel = (now: () => number, fire: (key: string) => void): TimerWheel => {
  const deadlines = new Map<string, number>();
  let timer: NodeJS.Timeout | null = null;
  let ringsAt = Number.POSITIVE_INFINITY;

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
    const due = [...deadlines].filter(([, at]) => at <= now()).map(([key]) => key);
    for (const key of due) deadlines.delete(key);
    for (const key of due) fire(key);
    ringBy(earliest(deadlines));
  };

  return {
    set: (key, at) => {
      if (at === null) deadlines.delete(key);
      else {
        deadlines.set(key, at);
        ringBy(at);
      }
    },
    stop: () => {
      deadlines.clear();
      clear();
    },
  };
};
