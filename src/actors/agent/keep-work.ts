import { messageOf } from '../../machines/message-of.ts';
import type { AttemptInput } from '../../machines/task.ts';
import type { AttemptPorts } from './open-attempt.ts';

const longestMs = 60_000;
/** A call that is stopped waits no longer for it. */
const longestWhenStoppedMs = 5_000;

/** Puts the folder of an attempt, as a step left it, where other servers can take it. Never rejects. */
export type KeepWork = (step: string, signal: AbortSignal) => Promise<void>;

const withLimits = async (
  signal: AbortSignal,
  work: (limit: AbortSignal) => Promise<void>,
): Promise<void> => {
  const limit = new AbortController();
  const end = (): void => limit.abort(new Error('it took too long'));
  const timers = [setTimeout(end, longestMs)];
  const onAbort = (): void => void timers.push(setTimeout(end, longestWhenStoppedMs));
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    await work(limit.signal);
  } finally {
    signal.removeEventListener('abort', onAbort);
    for (const timer of timers) clearTimeout(timer);
  }
};

/** Says once that it cannot keep the folder, until it can again. */
export const createKeepWork = (
  { workspace: { keep }, emit }: Pick<AttemptPorts, 'workspace' | 'emit'>,
  attempt: Pick<AttemptInput, 'taskId' | 'attempt'>,
): KeepWork => {
  let isTold = false;
  return async (step, signal) => {
    if (keep === null) return;
    try {
      await withLimits(signal, (limit) => keep(attempt, step, limit));
      isTold = false;
    } catch (error) {
      const message = `other servers could not go on from here: ${messageOf(error)}`;
      if (!isTold) emit(attempt, 'log', { level: 'warn', message });
      isTold = true;
    }
  };
};
