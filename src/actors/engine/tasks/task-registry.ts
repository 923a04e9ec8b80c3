import { createActor } from 'xstate';
import { ServiceError } from '../../../machines/errors.ts';
import { messageOf } from '../../../machines/message-of.ts';
import type { TaskEvent } from '../../../machines/task/task-context.ts';
import type { TaskMachine } from '../../../machines/task/task-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import { staleCommit } from '../../journal/commit-answer.ts';
import {
  holdingOf,
  isReadable,
  readStates,
  restingSnapshot,
  restoredSnapshot,
} from '../../journal/snapshots.ts';
import { shownIn, trackedFromView } from '../../journal/transition-frames.ts';
import type { SavedActor, Store } from '../../store/port.ts';
import type { Tracker } from '../../tracker/port.ts';
import type { ActorRoot } from '../slots/actor-system.ts';
import { createRestoreRetries, type RestoreRetries } from './deadlines.ts';
import type { LoadedTask, LoadedTasks } from './loaded-tasks.ts';
import { OwnedElsewhereError } from './owned-elsewhere.ts';
import { createSharedCalls } from './shared-calls.ts';

interface TaskStartPorts {
  readonly root: ActorRoot;
  readonly live: LoadedTasks;
  readonly tracker: Pick<Tracker, 'find' | 'actor'>;
  readonly store: Store;
  /** This start of the server. */
  readonly node: string;
  /**
   * Waits until the work of earlier actors of the task has ended. @throws when that takes too long
   */
  readonly whenEnded: (taskId: TaskId) => Promise<void>;
  /** Gives back the slot of a task that has no live attempt after its actor failed. */
  readonly returnSlot: (taskId: TaskId) => void;
  readonly setDeadline: (taskId: TaskId, at: number | null) => void;
  readonly now: () => number;
  /** First event of an actor that starts at rest. */
  readonly observation: (tracked: TrackedTask) => TaskEvent;
}

/** The registry's part in a start: it refuses one, and restores an actor that ends in error. */
interface TaskStartHooks {
  readonly requireRunning: () => void;
  readonly crashed: LoadedTasks['discard'];
}

/** An attempt that is restored more often, with no finished step in between, fails. */
const restoresAtMost = 3;

const lastShownOf = async (
  { store, tracker }: TaskStartPorts,
  taskId: TaskId,
): Promise<TrackedTask | null> => {
  const latest = await store.latest(taskId, 'snapshot');
  return latest === null ? null : trackedFromView(shownIn(latest.data), tracker.actor);
};

/** A pending task is found also while the tracker is away or has lost it. @throws task_not_found */
const requireTracked = async (
  ports: TaskStartPorts,
  taskId: TaskId,
  isPending: boolean,
): Promise<TrackedTask> => {
  const last = isPending ? await lastShownOf(ports, taskId) : null;
  const found = await (last === null
    ? ports.tracker.find(taskId)
    : ports.tracker.find(taskId).catch(() => null));
  const tracked = found ?? last;
  if (tracked === null) throw new ServiceError('task_not_found', { task_id: taskId });
  return tracked;
};

const asInternalError = (cause: unknown): never => {
  throw new ServiceError('internal', { detail: `${messageOf(cause)}; try again later` }, { cause });
};

interface TaskStartOptions {
  /** A state that cannot be read is given up: the task is then at rest. */
  readonly givesUp?: boolean;
  /** Counted restores of its attempt, if it runs; default: not counted. */
  readonly restores?: number;
  /** As the tracker has it; default: it is asked. */
  readonly known?: TrackedTask | null;
  /** Its row, if it was read when nothing of the task ran here; default: it is read. */
  readonly saved?: SavedActor;
}

interface CreatedTask {
  readonly task: LoadedTask;
  readonly isPending: boolean;
  /** Deadline of the saved state. */
  readonly deadlineAt: number | null;
}

/** An actor from the saved state of its task, not started. */
const createLoadedTask = async (
  logic: TaskMachine,
  { root, store }: TaskStartPorts,
  {
    id: taskId,
    tracked,
    givesUp,
    saved: row,
  }: TaskStartOptions & { readonly id: TaskId; readonly tracked: TrackedTask },
): Promise<CreatedTask> => {
  const saved = row ?? (await store.takeOver(taskId));
  const isStrange =
    saved !== null && (givesUp || !saved.pending) && !(await isReadable(store, saved, tracked));
  // Before the actor exists: one from a broken state would fail again and again.
  const state = saved === null || isStrange ? null : await readStates(store, saved, tracked);
  const snapshot = isStrange
    ? { snapshot: logic.getPersistedSnapshot(await restingSnapshot(store, taskId)) as never }
    : saved === null
      ? {}
      : { snapshot: restoredSnapshot(logic, saved) };
  const actor = createActor(logic, {
    id: taskId,
    parent: root.parent,
    input: { taskId },
    ...snapshot,
  });
  const task: LoadedTask = {
    actor,
    tracked,
    agent: state?.agent ?? null,
    running: null,
    shown: null,
    revision: saved?.revision ?? 0,
    agentRevision: 0,
    committing: null,
    fault: null,
  };
  return {
    task,
    isPending: saved?.pending === true && !isStrange,
    deadlineAt: state?.task.context.deadlineAt ?? null,
  };
};

/**
 * Starts the actor of a task from its committed state. @throws task_not_found, OwnedElsewhereError,
 * UnreadableStateError
 */
const createTaskStart =
  (logic: TaskMachine, ports: TaskStartPorts, hooks: TaskStartHooks) =>
  async (
    taskId: TaskId,
    { givesUp = false, restores = 0, known = null, saved: row }: TaskStartOptions,
  ): Promise<LoadedTask> => {
    const { live, store, now } = ports;
    const saved = row ?? (await store.actor(taskId));
    const wasPending = saved?.pending === true;
    if (wasPending && saved.owner !== null && saved.owner !== ports.node)
      throw new OwnedElsewhereError(saved.owner);
    const tracked = known ?? (await requireTracked(ports, taskId, wasPending));
    // A failed actor may have left work that is still being stopped; the next actor must not run
    // beside it.
    if (wasPending) await ports.whenEnded(taskId).catch(asInternalError);
    const { task, isPending, deadlineAt } = await createLoadedTask(logic, ports, {
      id: taskId,
      tracked,
      givesUp,
      saved: row,
    });
    hooks.requireRunning();
    live.add(taskId, task);
    task.actor.subscribe({
      next: () => void Promise.resolve(task.committing).then(() => live.removeIfIdle(taskId, task)),
      error: (error) => hooks.crashed(taskId, task, error),
    });
    if (isPending) ports.setDeadline(taskId, deadlineAt);
    if (!task.actor.getSnapshot().hasTag('live')) ports.returnSlot(taskId);
    task.actor.start();
    if (!isPending) task.actor.send(ports.observation(tracked));
    if (restores > restoresAtMost) task.actor.send({ type: 'restores.spent', restores, at: now() });
    return task;
  };

export interface TaskRegistryPorts extends TaskStartPorts {
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  /**
   * Called when a task actor ended in error: stops its agents and drops its uncommitted changes.
   */
  readonly onCrash: (taskId: TaskId) => void;
}

/**
 * Task actors by id: one for every pending task, and one for each task that is in use. An actor
 * starts from its committed state and is removed when it is neither pending nor in use.
 */
export interface TaskRegistry {
  isStarting(taskId: TaskId): boolean;
  /** Keeps the actor of a task while `work` runs. @throws task_not_found; internal when stopping */
  use<Result>(
    taskId: TaskId,
    work: (task: LoadedTask) => Promise<Result>,
    options?: TaskStartOptions,
  ): Promise<Result>;
  /** The task as its last frame shows it; null when it has no frame. */
  lastShown(taskId: TaskId): Promise<TrackedTask | null>;
  /** Starts the actor of a pending task; retries when that fails. */
  restore(taskId: TaskId, options?: TaskStartOptions): Promise<void>;
  /** Those that could not be restored, and are tried again. */
  failing(): ReadonlySet<TaskId>;
  /** Stops the actor of a task that another server has now. */
  drop(taskId: TaskId): void;
  dropAll(): void;
  stop(): void;
}

const stopping = (): ServiceError =>
  new ServiceError('internal', { detail: 'the server is stopping; try again when it is back' });

const restoredMeanwhile = (): ServiceError =>
  new ServiceError('internal', { detail: 'the task was restarted in the meantime; try again' });

/** A task actor ended in error: its successor starts from the committed state. */
const createCrashed = (
  ports: TaskRegistryPorts,
  retries: Pick<RestoreRetries<TaskId>, 'later'>,
): LoadedTasks['discard'] => {
  const { live, store } = ports;
  /** A commit that is still underway could begin an attempt: it becomes stale first. */
  const releaseSlot = async (taskId: TaskId): Promise<void> => {
    const { slot } = await holdingOf(store, await store.takeOver(taskId));
    if (live.get(taskId) === null && slot === null) ports.returnSlot(taskId);
  };
  return (taskId, task, error) => {
    ports.log('the actor of a task failed; it is restored from its committed state', {
      task_id: taskId,
      error,
    });
    live.remove(taskId, task);
    task.fault = error;
    ports.onCrash(taskId);
    releaseSlot(taskId).catch(() => {}); // The restore does it again.
    retries.later(taskId);
  };
};

export const createTaskRegistry = (logic: TaskMachine, ports: TaskRegistryPorts): TaskRegistry => {
  const { live } = ports;
  const starting = createSharedCalls<LoadedTask>();
  const retries = createRestoreRetries<TaskId>(ports.now, (taskId) => void restore(taskId));
  let stopped = false;
  const requireRunning = (): void => {
    if (stopped) throw stopping();
  };
  const crashed = createCrashed(ports, retries);
  live.onDiscard(crashed);
  const start = createTaskStart(logic, ports, { crashed, requireRunning });

  const taskFor = (taskId: TaskId, options: TaskStartOptions = {}): Promise<LoadedTask> => {
    const present = live.get(taskId);
    return present === null
      ? starting.run(taskId, () => start(taskId, options))
      : Promise.resolve(present);
  };

  const restore: TaskRegistry['restore'] = async (taskId, options) => {
    if (stopped) return;
    try {
      await taskFor(taskId, options);
      retries.forget(taskId);
    } catch (error) {
      if (error instanceof OwnedElsewhereError) return retries.forget(taskId);
      ports.log('could not restore a pending task; the server tries again', {
        task_id: taskId,
        error,
      });
      retries.later(taskId);
    }
  };

  const use: TaskRegistry['use'] = async (taskId, work, options) => {
    const endUse = live.beginUse(taskId);
    try {
      const task = await taskFor(taskId, options);
      const { status, error } = task.actor.getSnapshot();
      if (status === 'error') throw error;
      requireRunning();
      return await work(task);
    } finally {
      endUse();
    }
  };

  return {
    isStarting: starting.isRunning,
    lastShown: (taskId) => lastShownOf(ports, taskId),
    restore,
    failing: retries.waiting,
    drop: (taskId) => {
      const task = live.get(taskId);
      if (task === null) return;
      live.remove(taskId, task);
      task.fault = staleCommit();
      ports.setDeadline(taskId, null);
      ports.root.stop(task.actor);
    },
    use,
    dropAll: () => live.dropAll(restoredMeanwhile()),
    stop: () => {
      stopped = true;
      retries.stop();
      live.dropAll(stopping());
    },
  };
};
