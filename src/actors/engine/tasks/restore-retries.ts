import { createTimerWheel } from './deadlines.ts';

const firstRetryMs = 5_000;
const longestRetryMs = 10 * 60_000;

export interface RestoreRetries<Id extends string> {
  /** The pause doubles with each failure. */
  later(id: Id): void;
  forget(id: Id): void;
  /** Those that wait for their next try. */
  waiting(): ReadonlySet<Id>;
  stop(): void;
}

/** Calls `restore` again for tasks or workflows that could not be restored. */
export const createRestoreRetries = <Id extends string>(
  now: () => number,
  restore: (id: Id) => void,
): RestoreRetries<Id> => {
  const failures = new Map<Id, number>();
  const wheel = createTimerWheel(now, (id) => restore(id as Id));
  let stopped = false;
  return {
    later: (id) => {
      if (stopped) return;
      const count = failures.get(id) ?? 0;
      failures.set(id, count + 1);
      wheel.set(id, now() + Math.min(firstRetryMs * 2 ** count, longestRetryMs));
    },
    forget: (id) => void failures.delete(id),
    waiting: () => new Set(failures.keys()),
    stop: () => {
      stopped = true;
      wheel.stop();
    },
  };
};
