import { ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { TaskMachine } from '../../machines/task-machine.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { staleCommit } from '../journal/commit-answer.ts';
import { holdingOf } from '../journal/snapshots.ts';
import type { LoadedTask, LoadedTasks } from './loaded-tasks.ts';
import { OwnedElsewhereError } from './owned-elsewhere.ts';
import { createRestoreRetries, type RestoreRetries } from './restore-retries.ts';
import { createSharedCalls } from './shared-calls.ts';
import {
  createTaskStart,
  lastShownOf,
  type TaskStartOptions,
  type TaskStartPorts,
} from './start-task.ts';

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
