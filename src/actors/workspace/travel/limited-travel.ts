import { withDeadline } from '../../process/deadline.ts';
import { createSerialQueue, type SerialQueue } from '../../process/serial-queue.ts';
import type { KeyedAttempt, WorkTravel } from '../port.ts';

const sendMs = 60_000;
const takeMs = 120_000;

/**
 * Calls of the common repository take turns with other uses of the same files, and each one ends: a
 * repository that does not answer holds up nobody else for long.
 */
export const limitTravel = (
  travel: WorkTravel,
  inTurn: SerialQueue,
  ofAttempt: <Result>(keyed: KeyedAttempt, work: () => Promise<Result>) => Promise<Result>,
): WorkTravel => {
  /** Finished work changes no file of the project, and a folder only where its attempt ended elsewhere. */
  const finishedInTurn = createSerialQueue();
  const limited = <Result>(
    ms: number,
    signal: AbortSignal | undefined,
    work: (limit: AbortSignal) => Promise<Result>,
  ): Promise<Result> => withDeadline(ms, signal, 'the common repository', work);

  return {
    ...travel,
    keep: (keyed, step, signal) =>
      ofAttempt(keyed, () => limited(sendMs, signal, (limit) => travel.keep(keyed, step, limit))),
    send: (keyed, signal) =>
      ofAttempt(keyed, () => limited(sendMs, signal, (limit) => travel.send(keyed, limit))),
    take: (attempt, key, signal) =>
      inTurn(
        () => limited(takeMs, signal, (limit) => travel.take(attempt, key, limit)),
        signal && { signal },
      ),
    takeWork: (keyed, signal) =>
      finishedInTurn(
        () => limited(takeMs, signal, (limit) => travel.takeWork(keyed, limit)),
        signal && { signal },
      ),
  };
};
