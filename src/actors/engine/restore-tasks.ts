import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TaskId } from '../../machines/task.ts';
import { differenceFrom } from '../journal/replay.ts';
import type { ActorReads, EntryReads, SavedActor, StoreReads } from '../store/port.ts';
import type { TrackerReads } from '../tracker/port.ts';
import type { RestoreAttempts, RestoredTask } from './restore-attempts.ts';
import type { TaskRegistry } from './task-registry.ts';

/** Sorted by last change, so that of two requests at the same time the earlier one comes first. */
const byLastChange = async (
  store: Pick<EntryReads, 'latest'>,
  tasks: readonly SavedActor[],
): Promise<readonly SavedActor[]> => {
  const seqOf = async ({ taskId }: SavedActor) =>
    [taskId, (await store.latest(taskId, 'snapshot'))?.seq ?? 0] as const;
  const latest = new Map(await Promise.all(tasks.map(seqOf)));
  return tasks.toSorted(
    (one, other) => (latest.get(one.taskId) ?? 0) - (latest.get(other.taskId) ?? 0),
  );
};

/** Pending tasks that this server has. */
export const pendingOf = async (
  store: Pick<ActorReads, 'tasks'>,
  node: string,
): Promise<readonly SavedActor[]> =>
  (await store.tasks('pending')).filter(({ owner }) => owner === node);

type Log = (message: string, facts: Readonly<Record<string, unknown>>) => void;

/**
 * Says which saved states are not what their journals make of them. One task in each turn of the
 * event loop.
 */
export const compareWithJournals = async (
  store: StoreReads,
  ids: readonly TaskId[],
  log: Log,
  isStopped: () => boolean,
): Promise<void> => {
  for (const taskId of ids) {
    if (isStopped()) return;
    const difference = await differenceFrom(store, taskId);
    if (difference !== null)
      log('the journal and a saved state differ', { task_id: taskId, difference });
    await nextTurn();
  }
};

/**
 * Starts the actors of all pending tasks, in a new process or after the supervisor failed.
 * `working`: those whose attempt runs. @returns the ids of all
 */
export const restoreTasks = async (
  {
    node,
    store,
    tracker,
  }: {
    readonly node: string;
    readonly store: Pick<ActorReads, 'tasks'> & Pick<EntryReads, 'latest'>;
    readonly tracker: Pick<TrackerReads, 'findMany'>;
  },
  registry: Pick<TaskRegistry, 'lastShown'>,
  restore: RestoreAttempts,
  working: readonly TaskId[],
): Promise<readonly TaskId[]> => {
  const pending = await byLastChange(store, await pendingOf(store, node));
  const ids = pending.map(({ taskId }) => taskId as TaskId);
  if (ids.length === 0) return ids;
  const found = await tracker.findMany(ids).catch(() => []);
  const listed = new Map(found.map((task) => [task.id, task]));
  // One list instead of a call for each task; the last frame where the tracker is away.
  const tasks: RestoredTask[] = [];
  for (const taskId of ids)
    tasks.push({ taskId, known: listed.get(taskId) ?? (await registry.lastShown(taskId)) });
  await restore(tasks, working);
  return ids;
};
