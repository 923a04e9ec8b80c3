import type { TaskId } from '../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import type { Journal } from '../journal/journal.ts';
import type { TaskReads } from '../tracker/port.ts';

export interface AwaitPorts {
  readonly tracker: Pick<TaskReads, 'findMany'>;
  readonly journal: Pick<Journal, 'onCommit'>;
}

/** Others change tasks without an entry of ours: they are looked at again after this time. */
const readAgainMs = 2_000;
const endTypes: ReadonlySet<string> = new Set([
  'completed',
  'failed',
  'cancelled',
  'tracker_imported',
]);

export class DeletedTask extends Error {
  override readonly name = 'DeletedTask';
}

/** Resolves at the next end of one of the tasks, or after a while. */
const nextChange = (
  { journal }: AwaitPorts,
  ids: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> =>
  new Promise((resolve, reject) => {
    const over = (): void => {
      clearTimeout(timer);
      forget();
      signal.removeEventListener('abort', aborted);
    };
    const goOn = (): void => {
      over();
      resolve();
    };
    const aborted = (): void => {
      over();
      reject(signal.reason);
    };
    const timer = setTimeout(goOn, readAgainMs);
    const forget = journal.onCommit((entries) => {
      if (entries.some(({ taskId, type }) => ids.has(taskId) && endTypes.has(type)))
        setImmediate(goOn);
    });
    signal.addEventListener('abort', aborted, { once: true });
  });

/**
 * Waits until `isOver` holds for every task. `each` is called with those that it does not hold for,
 * at each look. @throws DeletedTask when one is gone
 */
export const awaitTasks = async (
  ports: AwaitPorts,
  taskIds: readonly TaskId[],
  isOver: (status: string) => boolean,
  signal: AbortSignal,
  each: (waiting: readonly TrackedTask[], signal: AbortSignal) => Promise<void> = async () => {},
): Promise<readonly TrackedTask[]> => {
  const ids = new Set<string>(taskIds);
  for (;;) {
    signal.throwIfAborted();
    const found = await ports.tracker.findMany(taskIds);
    const gone = taskIds.find((id) => !found.some((task) => task.id === id));
    if (gone !== undefined) throw new DeletedTask(`its task ${gone} was deleted`);
    const waiting = found.filter((task) => !isOver(statusInTracker(task)));
    if (waiting.length === 0) return found;
    const changed = nextChange(ports, ids, signal);
    changed.catch(() => {});
    await each(waiting, signal);
    await changed;
  }
};
