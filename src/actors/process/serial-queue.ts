/** `interactive`: a person or an attempt waits; `background`: nobody does. */
export type Urgency = 'interactive' | 'background';

export interface QueueOptions {
  /** Rejects the call while it waits; work that runs goes on. */
  readonly signal?: AbortSignal;
  readonly onWait?: () => void;
  readonly urgency?: Urgency;
}

/**
 * Runs one work at a time: interactive before background, each in order of arrival. Rejects when
 * the signal is aborted before the work begins. @throws QueueFullError
 */
export type SerialQueue = <Result>(
  work: () => Promise<Result>,
  options?: QueueOptions,
) => Promise<Result>;

export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

/** After this many interactive works in a row, a background one runs. */
const burst = 4;

export const createSerialQueue = (limit = Number.POSITIVE_INFINITY): SerialQueue => {
  const waiting: Record<Urgency, (() => Promise<void>)[]> = { interactive: [], background: [] };
  let running = false;
  let passed = 0;

  const next = (): (() => Promise<void>) | undefined => {
    const { interactive, background } = waiting;
    const isBackground = background.length > 0 && (interactive.length === 0 || passed >= burst);
    passed = isBackground ? 0 : passed + 1;
    return isBackground ? background.shift() : interactive.shift();
  };
  const runAll = async (): Promise<void> => {
    if (running) return;
    running = true;
    for (let work = next(); work !== undefined; work = next()) await work();
    running = false;
  };

  return (work, { signal, onWait, urgency = 'interactive' } = {}) =>
    new Promise((resolve, reject) => {
      if (waiting.interactive.length + waiting.background.length >= limit)
        return reject(new QueueFullError(`${limit} calls are already waiting`));
      const giveUp = (): void => reject(signal?.reason);
      if (running) onWait?.();
      if (signal?.aborted) giveUp();
      signal?.addEventListener('abort', giveUp, { once: true });
      waiting[urgency].push(async () => {
        signal?.removeEventListener('abort', giveUp);
        if (!signal?.aborted) await (async () => work())().then(resolve, reject);
      });
      void runAll();
    });
};

export const createSerialQueues = (): (<Result>(
  key: string,
  work: () => Promise<Result>,
) => Promise<Result>) => {
  const queues = new Map<string, { readonly queue: SerialQueue; users: number }>();
  return async (key, work) => {
    const own = queues.get(key) ?? { queue: createSerialQueue(), users: 0 };
    queues.set(key, own);
    own.users += 1;
    try {
      return await own.queue(work);
    } finally {
      own.users -= 1;
      if (own.users === 0) queues.delete(key);
    }
  };
};
