import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, StoreAwayError, type StoreReads } from '../store/port.ts';

const pauseMs = 250;
const longestMs = 10 * 60_000;

const patiently = async <Result>(read: () => Answer<Result>): Promise<Result> => {
  for (const began = performance.now(); ; await delay(pauseMs))
    try {
      return await read();
    } catch (error) {
      const isLate = performance.now() - began > longestMs;
      if (!(error instanceof StoreAwayError) || isLate) throw error;
    }
};

type AttemptReads = Pick<StoreReads, 'steps' | 'attempts'>;

/**
 * Reads of attempts wait while the store is away, as their commits do: an outage must not end
 * an attempt. A server that cannot reach the store ends before its lease is over.
 */
export const patientReads = (store: AttemptReads): AttemptReads => ({
  steps: (taskId, attempt) => patiently(() => store.steps(taskId, attempt)),
  attempts: (taskId) => patiently(() => store.attempts(taskId)),
});
