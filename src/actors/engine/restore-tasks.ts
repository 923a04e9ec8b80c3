import type { TaskId } from '../../machines/task.ts';
import { differenceFrom } from '../journal/replay.ts';
import type { SavedActor, Store } from '../store/port.ts';
import type { Tracker } from '../tracker/port.ts';
import type { TaskRegistry } from './task-registry.ts';

/** Sorted by last change, so that of two requests at the same time the earlier one comes first. */
const byLastChange = (store: Store, tasks: readonly SavedActor[]): readonly SavedActor[] => {
  const latest = new Map(tasks.map(({ taskId }) => [taskId, store.latest(taskId as TaskId, 'snapshot')?.seq ?? 0]));
  return tasks.toSorted((one, other) => (latest.get(one.taskId) ?? 0) - (latest.get(other.taskId) ?? 0));
};

/** Starts the actors of all pending tasks, in a new process or after the supervisor failed. */
export const restoreTasks = async (
  { store, tracker }: { readonly store: Store; readonly tracker: Tracker },
  registry: Pick<TaskRegistry, 'restore' | 'lastShown'>,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): Promise<void> => {
  const pending = byLastChange(store, store.tasks('pending'));
  if (pending.length === 0) return;
  const ids = pending.map(({ taskId }) => taskId as TaskId);
  const found = await tracker.findMany(ids).catch(() => []);
  const listed = new Map(found.map((task) => [task.id as string, task]));
  for (const { taskId } of pending) {
    const difference = differenceFrom(store, taskId as TaskId);
    if (difference !== null) log('the journal and a saved state differ', { task_id: taskId, difference });
  }
  // One list instead of a call for each task; the last frame where the tracker is away.
  for (const { taskId } of pending)
    await registry.restore(taskId as TaskId, listed.get(taskId) ?? registry.lastShown(taskId as TaskId));
};
