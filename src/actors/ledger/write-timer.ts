export interface WriteTimer {
  /** Writes some time after the change, unless a write is due already. */
  start(): void;
  /** Cancels the write that is due. */
  clear(): void;
  /** Lets no further write become due. */
  stop(): void;
}

const retryMs = 5_000;

/**
 * Writes `pauseMs` after a change, once for all changes until then, and again after a failure.
 */
export const createWriteTimer = (pauseMs: () => number, write: () => Promise<void>): WriteTimer => {
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;

  const writeIn = (ms: number): void => {
    if (stopped || timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      write().catch(() => writeIn(retryMs));
    }, ms).unref();
  };

  return {
    start: () => {
      if (timer === null) writeIn(pauseMs());
    },
    clear: () => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
    stop: () => {
      stopped = true;
    },
  };
};
