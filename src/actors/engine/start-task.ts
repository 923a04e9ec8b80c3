import { createActor } from 'xstate';
import { ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { TaskId } from '../../machines/task.ts';
import type { TaskEvent } from '../../machines/task-context.ts';
import type { TaskMachine } from '../../machines/task-machine.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { isReadable, readStates, restingSnapshot, restoredSnapshot } from '../journal/snapshots.ts';
import { shownIn, trackedFromView } from '../journal/transition-frames.ts';
import type { SavedActor, Store } from '../store/port.ts';
import type { Tracker } from '../tracker/port.ts';
import type { ActorRoot } from './actor-system.ts';
import type { LoadedTask, LoadedTasks } from './loaded-tasks.ts';
import { OwnedElsewhereError } from './owned-elsewhere.ts';

export interface TaskStartPorts {
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
export interface TaskStartHooks {
  readonly requireRunning: () => void;
  readonly crashed: LoadedTasks['discard'];
}

/** An attempt that is restored more often, with no finished step in between, fails. */
const restoresAtMost = 3;

export const lastShownOf = async (
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

export interface TaskStartOptions {
  /** A state that cannot be read is given up: the task is then at rest. */
  readonly givesUp?: boolean;
  /** Counted restores of its attempt, if it runs; default: not counted. */
  readonly restores?: number | undefined;
  /** As the tracker has it; default: it is asked. */
  readonly known?: TrackedTask | null | undefined;
  /** Its row, if it was read when nothing of the task ran here; default: it is read. */
  readonly saved?: SavedActor | undefined;
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
export const createTaskStart =
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
