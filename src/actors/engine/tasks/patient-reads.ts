import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, StoreAwayError, type StoreReads } from '../../store/port.ts';

const pauseMs = 250;
const longestMs = 10 * 60_000;

/** Also as the tracker tells it, whose tasks are in the store. */
const isStoreAway = (error: unknown): boolean =>
  error instanceof StoreAwayError ||
  (error instanceof Error && error.cause instanceof StoreAwayError);

/**
 * Reads for an attempt wait while the store is away, as its commits do: an outage must not end
 * it. A server that cannot reach the store ends before its lease is over.
 */
export const patiently = async <Result>(read: () => Answer<Result>): Promise<Result> => {
  for (const began = performance.now(); ; await delay(pauseMs))
    try {
      return await read();
    } catch (error) {
      const isLate = performance.now() - began > longestMs;
      if (!isStoreAway(error) || isLate) throw error;
    }
};

type AttemptReads = Pick<StoreReads, 'steps' | 'attempts'>;

export const patientReads = (store: AttemptReads): AttemptReads => ({
  steps: (taskId, attempt) => patiently(() => store.steps(taskId, attempt)),
  attempts: (taskId) => patiently(() => store.attempts(taskId)),
});
