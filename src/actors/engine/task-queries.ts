import { ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { Verdict } from '../../machines/task-context.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { frameText } from '../journal/event-types.ts';
import { differenceFrom, entriesUpTo, fold, type ReplayedStep } from '../journal/replay.ts';
import { removedView, type TaskView } from '../journal/task-view.ts';
import { endLabels } from '../ledger/issue.ts';
import type { NewEntry, StoreReads } from '../store/port.ts';
import type { TrackerReads, TrackerWrites } from '../tracker/port.ts';
import { type ListRequest, listTasks, type TaskPage } from './list-tasks.ts';
import { createTaskEdits, type TaskEdits } from './task-edits.ts';
import { requireId } from './task-id.ts';

export interface CreateRequest {
  readonly description: string;
  readonly title?: string;
  readonly dependencies?: readonly string[];
  readonly priority?: number;
  readonly labels?: readonly string[];
}

export interface ReplayRequest {
  readonly taskId: string;
  /** Last seq to replay; null: all. */
  readonly at: number | null;
}

/** Result of a replay of a task's journal (CONTRACT 7, `agent replay`). */
export interface Replayed {
  readonly task_id: string;
  readonly steps: readonly ReplayedStep[];
  readonly state: { readonly task: unknown; readonly agent: unknown };
  readonly context: { readonly task: unknown; readonly agent: unknown };
  /** Difference to the saved state after a full replay; null when there is none. */
  readonly difference: string | null;
  /** Then there are no steps: without its beginning, a journal leads to no state. */
  readonly history_removed?: TaskView['history_removed'];
}

export interface TaskHistory {
  readonly entries: readonly unknown[];
  readonly next_after?: number;
  /** Present when entries after the given seq were removed. */
  readonly history_removed?: TaskView['history_removed'];
}

export interface HistoryRequest {
  readonly taskId: string;
  readonly after?: number;
  readonly limit?: number;
}

/** Operations that need no agent, so no server. They reject with `ServiceError` only. */
export interface TaskQueries extends TaskEdits {
  /** @throws invalid_params, task_not_found (a dependency), tracker_unavailable */
  create(request: CreateRequest): Promise<TaskView>;
  /** @throws task_not_found */
  status(taskId: string): Promise<TaskView>;
  /** `status: queued`: tasks whose dependencies are complete (Spec 4). */
  list(request: ListRequest): Promise<TaskPage>;
  /** The first task depends on the second. @throws task_not_found, dependency_cycle */
  addDependency(taskId: string, dependsOn: string): Promise<TaskView>;
  /** @throws task_not_found */
  removeDependency(taskId: string, dependsOn: string): Promise<TaskView>;
  /** @throws task_not_found */
  replay(request: ReplayRequest): Promise<Replayed>;
  /** Frames of a task, oldest first. */
  history(request: HistoryRequest): Promise<TaskHistory>;
}

export interface TaskQueryPorts {
  readonly tracker: TrackerReads & TrackerWrites;
  /** Null in a project without runs. */
  readonly store: Pick<StoreReads, 'read' | 'actor' | 'tasks' | 'removed'> | null;
  readonly viewOf: (tracked: TrackedTask) => TaskView;
  /** Commits an entry to the journal, soon. */
  readonly record: (entry: NewEntry) => void;
  readonly now: () => number;
  /** A live task as the tracker had it last, for outages. */
  readonly knownTask?: (taskId: TaskId) => TrackedTask | null;
}

const titleBytes = 500;
const pageSize = 1_000;

/** The first line, cut to the bytes of a title. */
export const titleFrom = (description: string): string => {
  const line = description.trim().split(/\r?\n/, 1)[0]?.trim() ?? '';
  const characters = [...line];
  while (Buffer.byteLength(characters.join('')) > titleBytes)
    characters.length = Math.floor(characters.length * 0.9);
  return characters.join('');
};

export const createTaskQueries = ({
  tracker,
  store,
  viewOf,
  record,
  now,
  knownTask,
}: TaskQueryPorts): TaskQueries => {
  const find = async (taskId: string): Promise<TrackedTask> => {
    const id = requireId(taskId);
    const known = (): TrackedTask | null => knownTask?.(id) ?? null;
    const found = await tracker.find(id).catch((error: unknown) => {
      if (known() === null) throw error;
      return null;
    });
    const tracked = found ?? known();
    if (tracked !== null) return tracked;
    const detail = await tracker.unreadable();
    // The task may be in an unreadable line.
    if (detail !== null)
      throw new ServiceError('tracker_unavailable', { detail, remedy: 'fix or remove that line' });
    throw new ServiceError('task_not_found', { task_id: taskId });
  };
  const changed = async (taskId: string, change: Promise<Verdict>): Promise<TaskView> => {
    const { refusal } = await change;
    if (refusal !== null) throw ServiceError.from(refusal);
    return viewOf(await find(taskId));
  };
  return {
    addDependency: async (taskId, dependsOn) =>
      changed(taskId, tracker.addDependency(requireId(taskId), requireId(dependsOn))),
    removeDependency: async (taskId, dependsOn) =>
      changed(taskId, tracker.removeDependency(requireId(taskId), requireId(dependsOn))),
    create: async (request) => {
      const description = request.description.trim();
      if (description === '')
        throw new ServiceError('invalid_params', {
          fields: [{ path: 'description', problem: 'is empty' }],
        });
      const given = request.labels?.find((label) => endLabels.includes(label));
      if (given !== undefined)
        throw new ServiceError('invalid_params', {
          fields: [
            { path: 'labels', problem: `${given} says how an attempt ended; the service gives it` },
          ],
        });
      const tracked = await tracker.create({
        title: request.title?.trim() || titleFrom(description),
        description,
        priority: request.priority ?? 2,
        labels: request.labels ?? [],
        dependencies: (request.dependencies ?? []).map(requireId),
      });
      return viewOf(tracked);
    },
    status: async (taskId) => viewOf(await find(taskId)),
    list: (request) => listTasks({ tracker, store, viewOf }, request),
    ...createTaskEdits({ tracker, store, find, viewOf, record, now }),
    replay: async ({ taskId, at }) => {
      const { id } = await find(taskId);
      const removed = store?.removed(id) ?? null;
      const { steps, task, agent } = fold(
        id,
        store === null || removed !== null ? [] : entriesUpTo(store, id, at),
      );
      return {
        task_id: id,
        steps,
        state: { task: task.value, agent: agent?.value ?? null },
        context: { task: task.context, agent: agent?.context ?? null },
        difference: store === null || at !== null ? null : differenceFrom(store, id),
        ...(removed === null ? {} : { history_removed: removedView(removed) }),
      };
    },
    history: async ({ taskId, after: seq = 0, limit = pageSize }) => {
      const { id } = await find(taskId);
      const entries = store?.read({ taskId: id, after: seq, limit }) ?? [];
      const last = entries.at(-1);
      const removed = store?.removed(id) ?? null;
      return {
        entries: entries.map((entry): unknown => JSON.parse(frameText(entry))),
        ...(entries.length === limit && last !== undefined ? { next_after: last.seq } : {}),
        ...(removed !== null && seq < removed.seq ? { history_removed: removedView(removed) } : {}),
      };
    },
  };
};
