import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { TaskId } from '../../../machines/task.ts';
import { differenceFrom } from '../../journal/replay/replay.ts';
import type { ActorReads, StoreReads } from '../../store/port.ts';
import type { TrackerReads } from '../../tracker/port.ts';
import type { LoadedTasks } from './loaded-tasks.ts';
import type { RestoreAttempts, RestoredTask } from './restore-attempts.ts';
import type { TaskRegistry } from './task-registry.ts';

type Log = (message: string, facts: Readonly<Record<string, unknown>>) => void;

/** Those that changed last. */
const comparedAtMost = 1_000;

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
  for (const taskId of ids.slice(-comparedAtMost)) {
    if (isStopped()) return;
    const difference = await differenceFrom(store, taskId);
    if (difference !== null)
      log('the journal and a saved state differ', { task_id: taskId, difference });
    await nextTurn();
  }
};

const restoredAtOnce = 200;

/** A part of the ids in each turn of the event loop. */
export async function* inParts(ids: readonly TaskId[]): AsyncGenerator<readonly TaskId[]> {
  for (let from = 0; from < ids.length; from += restoredAtOnce) {
    yield ids.slice(from, from + restoredAtOnce);
    await nextTurn();
  }
}

interface RestorePorts {
  readonly node: string;
  readonly store: Pick<ActorReads, 'actors'>;
  readonly tracker: Pick<TrackerReads, 'findMany'>;
  readonly registry: Pick<TaskRegistry, 'lastShown' | 'drop' | 'restore' | 'isStarting'>;
  readonly live: Pick<LoadedTasks, 'get'>;
}

/** The last frame of a task says what it is where the tracker is away. */
const readTasks = async (
  { store, tracker, registry }: RestorePorts,
  ids: readonly TaskId[],
): Promise<readonly RestoredTask[]> => {
  const [rows, found] = await Promise.all([
    store.actors(ids),
    tracker.findMany(ids).catch(() => []),
  ]);
  const saved = new Map(rows.map((row) => [row.id, row]));
  const listed = new Map(found.map((task) => [task.id, task]));
  const tasks: RestoredTask[] = [];
  for (const taskId of ids)
    tasks.push({
      taskId,
      known: listed.get(taskId) ?? (await registry.lastShown(taskId)),
      saved: saved.get(taskId),
    });
  return tasks;
};

const startingAtMostMs = 30_000;
const lookMs = 20;

/**
 * Stops the actors of tasks that another server took, with or without a run of them: their rows are
 * newer. The word of a take may be late. It may come before there is an actor to stop, or when this
 * server has taken the task back; then its actor starts from the newer row.
 */
export const dropTaken = async (
  { node, store, registry, live }: Omit<RestorePorts, 'tracker'>,
  ids: readonly TaskId[],
): Promise<void> => {
  for (let waited = 0; waited < startingAtMostMs && ids.some(registry.isStarting); waited += lookMs)
    await delay(lookMs);
  for (const { taskId, revision, pending, owner } of await store.actors(ids)) {
    const id = taskId as TaskId;
    const task = live.get(id);
    if (task === null || revision <= task.revision) continue;
    registry.drop(id);
    if (pending && owner === node) await registry.restore(id);
  }
};

/** Starts the actors of pending tasks, in this order. `working`: those whose attempt runs. */
export const restoreTasks = async (
  ports: RestorePorts,
  restore: RestoreAttempts,
  ids: readonly TaskId[],
  working: readonly TaskId[],
): Promise<void> => {
  const works = new Set(working);
  await restore(await readTasks(ports, working), working);
  for await (const some of inParts(ids.filter((id) => !works.has(id)))) {
    await restore(await readTasks(ports, some), []);
    await dropTaken(ports, some);
  }
};
