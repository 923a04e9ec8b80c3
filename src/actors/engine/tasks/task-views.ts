import type { TaskContext } from '../../../machines/task/task-context.ts';
import type { TaskSnapshot } from '../../../machines/task/task-machine.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import {
  asTracked,
  type SavedTaskReads,
  savedSnapshot,
  viewSaved,
} from '../../journal/snapshots.ts';
import { type AgentState, type TaskView, toView } from '../../journal/task-view.ts';
import type { LoadedTask } from './loaded-tasks.ts';

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

export interface TaskViewPorts {
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
