import type { TaskId } from '../../machines/task.ts';
import { createTimerWheel } from './deadlines.ts';

const firstRetryMs = 5_000;
const longestRetryMs = 10 * 60_000;

export interface RestoreRetries {
  /** The pause doubles with each failure. */
  later(taskId: TaskId): void;
  forget(taskId: TaskId): void;
  stop(): void;
}

/** Calls `restore` again for tasks that could not be restored. */
export const createRestoreRetries = (
  now: () => number,
  restore: (taskId: TaskId) => void,
): RestoreRetries => {
  const failures = new Map<TaskId, number>();
  const wheel = createTimerWheel(now, (taskId) => restore(taskId as TaskId));
  let stopped = false;
  return {
    later: (taskId) => {
      if (stopped) return;
      const count = failures.get(taskId) ?? 0;
      failures.set(taskId, count + 1);
      wheel.set(taskId, now() + Math.min(firstRetryMs * 2 ** count, longestRetryMs));
    },
    forget: (taskId) => void failures.delete(taskId),
    stop: () => {
      stopped = true;
      wheel.stop();
    },
  };
};
