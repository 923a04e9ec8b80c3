export interface WriteTimer {
  /** Writes in `ms`, unless a write is due already. */
  start(ms: number): void;
  /** Cancels the write that is due. */
  clear(): void;
  /** Lets no further write become due. */
  stop(): void;
}

const retryMs = 5_000;

/** Writes some time after a change, once for all changes until then, and again after a failure. */
export const createWriteTimer = (write: () => Promise<void>): WriteTimer => {
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;

  const start = (ms: number): void => {
    if (stopped) return;
    timer ??= setTimeout(() => {
      timer = null;
      write().catch(() => start(retryMs));
    }, ms).unref();
  };

  return {
    start,
    clear: () => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
    stop: () => {
      stopped = true;
    },
  };
};
