export interface Turn {
  /** Ends the waiting, not the work. */
  readonly signal?: AbortSignal;
  /** Called when others are before it. */
  readonly onWait?: () => void;
}

/**
 * Runs what it is given one after the other, in the order in which it was given. Rejects with the reason of the signal
 * when that is aborted before the turn has come; then the work is never begun.
 */
export type Mutex = <Result>(work: () => Promise<Result>, turn?: Turn) => Promise<Result>;

export const createMutex = (): Mutex => {
  let last: Promise<void> = Promise.resolve();
  let present = 0;
  return (work, { signal, onWait } = {}) =>
    new Promise((resolve, reject) => {
      const giveUp = (): void => reject(signal?.reason);
      if (present > 0) onWait?.();
      if (signal?.aborted) giveUp();
      signal?.addEventListener('abort', giveUp, { once: true });
      present += 1;
      last = last.then(async () => {
        signal?.removeEventListener('abort', giveUp);
        if (!signal?.aborted) await (async () => work())().then(resolve, reject);
        present -= 1;
      });
    });
};

/** A mutex for each key, for as long as somebody uses it. */
export const createMutexes = (): (<Result>(key: string, work: () => Promise<Result>) => Promise<Result>) => {
  const mutexes = new Map<string, { readonly mutex: Mutex; users: number }>();
  return async (key, work) => {
    const own = mutexes.get(key) ?? { mutex: createMutex(), users: 0 };
    mutexes.set(key, own);
    own.users += 1;
    try {
      return await own.mutex(work);
    } finally {
      own.users -= 1;
      if (own.users === 0) mutexes.delete(key);
    }
  };
};
