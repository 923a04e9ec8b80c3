import { createActor, type InspectionEvent } from 'xstate';
import { ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { TaskId } from '../../machines/task.ts';
import type { TaskEvent } from '../../machines/task-context.ts';
import type { TaskMachine } from '../../machines/task-machine.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { persistedSnapshot, readSaved, savedSlot } from '../journal/snapshots.ts';
import { shownIn, trackedFromView } from '../journal/transition-frames.ts';
import type { Store } from '../store/port.ts';
import type { Tracker } from '../tracker/port.ts';
import { createTaskRoot, type TaskRoot } from './actor-system.ts';
import { createLiveTasks, type LiveTask, type LiveTasks } from './live-tasks.ts';
import { createRestoreRetries } from './restore-retries.ts';
import { createSharedCalls } from './shared-calls.ts';

export interface TaskRegistryPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  readonly inspected: { readonly inspect?: (event: InspectionEvent) => void };
  /** Waits until the work of earlier actors of the task has ended. @throws when that takes too long */
  readonly whenEnded: (taskId: TaskId) => Promise<void>;
  /** Called when a task actor ended in error: stops its agents and drops its uncommitted changes. */
  readonly onCrash: (taskId: TaskId) => void;
  /** Gives back the slot of a task that has no live attempt after its actor failed. */
  readonly returnSlot: (taskId: TaskId) => void;
  readonly setDeadline: (taskId: TaskId, at: number | null) => void;
  /** First event of an actor that starts at rest. */
  readonly observation: (tracked: TrackedTask) => TaskEvent;
}

/**
 * Task actors by id: one for every pending task, and one for each task that is in use. An actor
 * starts from its committed state and is removed when it is neither pending nor in use.
 */
export interface TaskRegistry {
  get(taskId: TaskId): LiveTask | null;
  isStarting(taskId: TaskId): boolean;
  /** Keeps the actor of a task while `work` runs. @throws task_not_found; internal when stopping */
  use<Result>(taskId: TaskId, work: (task: LiveTask) => Promise<Result>): Promise<Result>;
  /** The task as its last frame shows it; null when it has no frame. */
  lastShown(taskId: TaskId): TrackedTask | null;
  /** Starts the actor of a pending task; retries when that fails. */
  restore(taskId: TaskId, known?: TrackedTask | null): Promise<void>;
  dropAll(): void;
  /** Stops an actor whose state could not be committed; it is restored from the state before. */
  discard(taskId: TaskId, task: LiveTask, error: unknown): void;
  stop(): void;
}

const stopping = (): ServiceError =>
  new ServiceError('internal', { detail: 'the server is stopping; ask again when it is back' });

const restoredMeanwhile = (): ServiceError =>
  new ServiceError('internal', { detail: 'the task was taken up again meanwhile; ask again' });

const asInternalError = (cause: unknown): never => {
  throw new ServiceError('internal', { detail: `${messageOf(cause)}; ask again later` }, { cause });
};

const lastShownOf = ({ store, tracker }: TaskRegistryPorts, taskId: TaskId): TrackedTask | null => {
  const latest = store.latest(taskId, 'snapshot');
  return latest === null ? null : trackedFromView(shownIn(latest.data), tracker.actor);
};

/** An actor from the saved state of its task, not started; also the deadline of that state. */
const createLiveTask = async (
  logic: TaskMachine,
  root: TaskRoot,
  store: Store,
  { taskId, tracked }: { readonly taskId: TaskId; readonly tracked: TrackedTask },
): Promise<{ readonly task: LiveTask; readonly isPending: boolean; readonly deadlineAt: number | null }> => {
  const saved = await store.takeOver(taskId);
  const snapshot = saved === null ? {} : { snapshot: persistedSnapshot(saved) };
  const actor = createActor(logic, { id: taskId, parent: root.parent, input: { taskId }, ...snapshot });
  const rows = saved === null ? null : readSaved(store, saved);
  return {
    task: {
      actor,
      tracked,
      agent: rows?.agent ?? null,
      running: null,
      shown: null,
      revision: saved?.revision ?? 0,
      agentRevision: 0,
      committing: null,
      fault: null,
    },
    isPending: saved?.pending === true,
    deadlineAt: rows?.task.context.deadlineAt ?? null,
  };
};

/** A pending task is found also while the tracker is away or has lost it. @throws task_not_found */
const requireTracked = async (ports: TaskRegistryPorts, taskId: TaskId, isPending: boolean): Promise<TrackedTask> => {
  const last = isPending ? lastShownOf(ports, taskId) : null;
  const found = await (last === null ? ports.tracker.find(taskId) : ports.tracker.find(taskId).catch(() => null));
  const tracked = found ?? last;
  if (tracked === null) throw new ServiceError('task_not_found', { task_id: taskId });
  return tracked;
};

const createUse =
  (live: LiveTasks, taskFor: (taskId: TaskId) => Promise<LiveTask>, isStopped: () => boolean): TaskRegistry['use'] =>
  async (taskId, work) => {
    const endUse = live.beginUse(taskId);
    try {
      const task = await taskFor(taskId);
      const { status, error } = task.actor.getSnapshot();
      if (status === 'error') throw error;
      if (isStopped()) throw stopping();
      return await work(task);
    } finally {
      endUse();
    }
  };

export const createTaskRegistry = (logic: TaskMachine, ports: TaskRegistryPorts): TaskRegistry => {
  const { store } = ports;
  const root = createTaskRoot(ports.inspected);
  const live = createLiveTasks(root.stop);
  const starting = createSharedCalls<LiveTask>();
  const retries = createRestoreRetries(ports.now, (taskId) => void restore(taskId));
  let stopped = false;

  const crashed = (taskId: TaskId, task: LiveTask, error: unknown): void => {
    ports.log('the actor of a task failed; it is restored from its committed state', { task_id: taskId, error });
    live.remove(taskId, task);
    task.fault = error;
    ports.onCrash(taskId);
    releaseSlot(taskId).catch(() => {}); // The restore does it again.
    retries.later(taskId);
  };
  /** A commit that is still underway could begin an attempt: it becomes stale first. */
  const releaseSlot = async (taskId: TaskId): Promise<void> => {
    await store.takeOver(taskId);
    if (live.get(taskId) === null && savedSlot(store, taskId) === null) ports.returnSlot(taskId);
  };

  const start = async (taskId: TaskId, known: TrackedTask | null): Promise<LiveTask> => {
    const wasPending = store.actor(taskId)?.pending === true;
    const tracked = known ?? (await requireTracked(ports, taskId, wasPending));
    // A failed actor may have left work that is still being stopped; the next actor must not run beside it.
    if (wasPending) await ports.whenEnded(taskId).catch(asInternalError);
    const { task, isPending, deadlineAt } = await createLiveTask(logic, root, store, { taskId, tracked });
    if (stopped) throw stopping();
    live.add(taskId, task);
    task.actor.subscribe({
      next: () => void Promise.resolve(task.committing).then(() => live.removeIfIdle(taskId, task)),
      error: (error) => crashed(taskId, task, error),
    });
    if (isPending) ports.setDeadline(taskId, deadlineAt);
    if (!task.actor.getSnapshot().hasTag('live')) ports.returnSlot(taskId);
    task.actor.start();
    if (!isPending) task.actor.send(ports.observation(tracked));
    return task;
  };

  const taskFor = (taskId: TaskId, known: TrackedTask | null = null): Promise<LiveTask> => {
    const present = live.get(taskId);
    return present === null ? starting.run(taskId, () => start(taskId, known)) : Promise.resolve(present);
  };

  const restore = async (taskId: TaskId, known: TrackedTask | null = null): Promise<void> => {
    if (stopped) return;
    try {
      await taskFor(taskId, known);
      retries.forget(taskId);
    } catch (error) {
      ports.log('a pending task could not be restored; the server tries again', { task_id: taskId, error });
      retries.later(taskId);
    }
  };

  return {
    get: live.get,
    isStarting: starting.isRunning,
    lastShown: (taskId) => lastShownOf(ports, taskId),
    restore,
    use: createUse(live, taskFor, () => stopped),
    discard: (taskId, task, error) => {
      if (live.get(taskId) !== task) return;
      crashed(taskId, task, error);
      root.stop(task.actor);
    },
    dropAll: () => live.dropAll(restoredMeanwhile()),
    stop: () => {
      stopped = true;
      retries.stop();
      live.dropAll(stopping());
    },
  };
};
