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
  let armedFor = Number.POSITIVE_INFINITY;

  const arm = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    armedFor = earliest(deadlines);
    if (armedFor === Number.POSITIVE_INFINITY) return;
    timer = setTimeout(ring, Math.min(Math.max(0, armedFor - now()), lookAgainMs));
    timer.unref();
  };
  const ring = (): void => {
    const due = [...deadlines].filter(([, at]) => at <= now()).map(([key]) => key);
    for (const key of due) deadlines.delete(key);
    for (const key of due) fire(key);
    arm();
  };

  return {
    set: (key, at) => {
      const earlier = deadlines.get(key);
      if (at === null) deadlines.delete(key);
      else deadlines.set(key, at);
      if ((at !== null && at < armedFor) || earlier === armedFor) arm();
    },
    stop: () => {
      deadlines.clear();
      arm();
    },
  };
};
