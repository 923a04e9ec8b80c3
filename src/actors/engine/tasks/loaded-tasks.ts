import type { ActorRefFrom } from 'xstate';
import type { AgentSnapshot } from '../../../machines/agent/agent-machine.ts';
import type { TaskContext } from '../../../machines/task/task-context.ts';
import type { TaskMachine, TaskSnapshot } from '../../../machines/task/task-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import {
  asTracked,
  type SavedTaskReads,
  savedSnapshot,
  viewSaved,
} from '../../journal/snapshots.ts';
import { type AgentState, type TaskView, toView } from '../../journal/task-view.ts';
import type { PreviousView } from '../../journal/transition-frames.ts';

export interface LoadedTask {
  readonly actor: ActorRefFrom<TaskMachine>;
  tracked: TrackedTask;
  agent: AgentState | null;
  /** Snapshot of the agent, if it runs in this process. */
  running: AgentSnapshot | null;
  shown: PreviousView | null;
  /** Revisions of the saved task and of the saved agent of its attempt. */
  revision: number;
  agentRevision: number;
  /** Resolves when the commits that are underway have ended; null when none is. */
  committing: Promise<void> | null;
  /** Set when it is given up: the answer for those who still wait. */
  fault: unknown;
}

/** By id. A task that is neither pending nor in use, and commits nothing, is removed. */
export interface KeptTasks {
  get(taskId: TaskId): LoadedTask | null;
  /** True while a run of the task goes on in this process. */
  isPending(taskId: TaskId): boolean;
  all(): Iterable<readonly [TaskId, LoadedTask]>;
  add(taskId: TaskId, task: LoadedTask): void;
  /** Removes this task, not one that replaced it. */
  remove(taskId: TaskId, task: LoadedTask): void;
  removeIfIdle(taskId: TaskId, task: LoadedTask): void;
  /** Calls the listener when a task is removed. */
  onRest(listener: (taskId: TaskId) => void): void;
  /** @returns ends the use */
  beginUse(taskId: TaskId): () => void;
}

interface Discards {
  /** Stops an actor whose state could not be committed; it is restored from the state before. */
  discard(taskId: TaskId, task: LoadedTask, error: unknown): void;
  /** Names who restores it. */
  onDiscard(listener: Discards['discard']): void;
  /** Stops all; `fault` is the answer for those who still wait. */
  dropAll(fault: Error): void;
}

export type LoadedTasks = KeptTasks & Discards;

export const createLoadedTasks = (stopActor: (actor: LoadedTask['actor']) => void): LoadedTasks => {
  const live = new Map<TaskId, LoadedTask>();
  const uses = new Map<TaskId, number>();
  let discarded: Discards['discard'] = () => {};
  let rests: (taskId: TaskId) => void = () => {};
  const removed = (taskId: TaskId): void => {
    live.delete(taskId);
    rests(taskId);
  };

  const removeIfIdle = (taskId: TaskId, task: LoadedTask): void => {
    if (live.get(taskId) !== task || uses.has(taskId) || task.committing !== null) return;
    if (task.actor.getSnapshot().hasTag('pending')) return;
    removed(taskId);
    stopActor(task.actor);
  };
  return {
    get: (taskId) => live.get(taskId) ?? null,
    isPending: (taskId) => live.get(taskId)?.actor.getSnapshot().hasTag('pending') === true,
    all: () => live.entries(),
    add: (taskId, task) => void live.set(taskId, task),
    remove: (taskId, task) => {
      if (live.get(taskId) === task) removed(taskId);
    },
    removeIfIdle,
    onRest: (listener) => {
      rests = listener;
    },
    beginUse: (taskId) => {
      uses.set(taskId, (uses.get(taskId) ?? 0) + 1);
      return () => {
        const others = (uses.get(taskId) ?? 1) - 1;
        if (others === 0) uses.delete(taskId);
        else uses.set(taskId, others);
        const task = live.get(taskId);
        if (task !== undefined) removeIfIdle(taskId, task);
      };
    },
    discard: (taskId, task, error) => {
      if (live.get(taskId) !== task) return;
      discarded(taskId, task, error);
      stopActor(task.actor);
    },
    onDiscard: (listener) => {
      discarded = listener;
    },
    dropAll: (fault) => {
      for (const [taskId, task] of [...live]) {
        removed(taskId);
        task.fault = fault;
        stopActor(task.actor);
      }
    },
  };
};

export interface TaskViews {
  viewOf(tracked: TrackedTask): Promise<TaskView>;
  /** The view of a live task as the tracker had it last. */
  viewOfLive(task: LoadedTask): TaskView;
  /** Null unless the task is live. */
  contextOf(taskId: TaskId): TaskContext | null;
  /** A live task as the tracker had it last, for when the tracker is away. */
  knownTask(taskId: TaskId): TrackedTask | null;
  priorityOf(taskId: TaskId): number;
  /** With `tracked`, a task at rest follows its status in the tracker. */
  snapshotOf(taskId: TaskId, tracked?: TrackedTask | null): Promise<TaskSnapshot>;
}

interface TaskViewPorts {
  readonly store: SavedTaskReads;
  readonly now: () => number;
  readonly live: (taskId: TaskId) => LoadedTask | null;
}

export const agentOfAttempt = (task: LoadedTask, attempt: number): AgentState | null =>
  task.agent?.context.attempt === attempt ? task.agent : null;

const viewOfLive = (live: LoadedTask, tracked: TrackedTask): TaskView => {
  const task = live.actor.getSnapshot();
  const changedAt = live.shown?.changedAt ?? 0;
  return toView({ tracked, task, agent: agentOfAttempt(live, task.context.attempt), changedAt });
};

export const createTaskViews = ({ store, now, live }: TaskViewPorts): TaskViews => ({
  viewOf: async (tracked) => {
    const found = live(tracked.id);
    return found === null ? viewSaved(store, tracked) : viewOfLive(found, tracked);
  },
  viewOfLive: (task) => viewOfLive(task, task.tracked),
  contextOf: (taskId) => live(taskId)?.actor.getSnapshot().context ?? null,
  knownTask: (taskId) => live(taskId)?.tracked ?? null,
  priorityOf: (taskId) => live(taskId)?.tracked.priority ?? 2,
  snapshotOf: async (taskId, tracked = null) => {
    const snapshot = live(taskId)?.actor.getSnapshot() ?? (await savedSnapshot(store, taskId));
    return tracked === null ? snapshot : asTracked(snapshot, tracked, now());
  },
});
