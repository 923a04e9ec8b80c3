import { isServiceError, ServiceError } from '../../machines/errors.ts';
import type { Acceptance } from '../../machines/task/task-context.ts';
import type { EndLabel } from '../../machines/task/task-selectors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { NewTask, PageRequest, TrackedTask } from '../../machines/tracked-task.ts';
import type { Urgency } from '../process/serial-queue.ts';
import type { TaskEdit } from '../store/port.ts';

export type { NewTask, TrackedTask };

export interface TrackerChanges {
  readonly tasks: readonly TrackedTask[];
  readonly mark: number;
  /** `all`: all tasks, changed or not. `more`: there are more changes. `end`: there are none. */
  readonly extent: 'all' | 'more' | 'end';
}

/** A change of a task's status by a transition of its chart. */
export type StatusChange =
  | { readonly kind: 'claim'; readonly id: TaskId }
  | { readonly kind: 'release'; readonly id: TaskId; readonly label: EndLabel }
  | { readonly kind: 'close'; readonly id: TaskId; readonly reason: string }
  | { readonly kind: 'reopen'; readonly id: TaskId };

export interface PreparedChange extends Acceptance {
  /**
   * Not written yet: the transition commits it, and the task is `tracked` then. Absent when it is
   * written.
   */
  readonly toCommit?: { readonly edit: TaskEdit; readonly tracked: TrackedTask };
}

interface Preparation {
  readonly fence: Fence;
  /**
   * Resolves when the state that asks is durable, and still holds. A tracker that writes by itself
   * waits for it.
   */
  readonly committed: () => Promise<void>;
}

/**
 * Called inside a write, when nothing can come between it and the change any more. It throws when
 * the writer may not write any more, for its attempt is over; then nothing is changed.
 */
export type Fence = () => void;

export interface TrackerInfo {
  /** `embedded` or `bd`. */
  readonly name: string;
  readonly actor: string;
}

export interface TaskReads {
  /** @returns null when there is no such task. */
  find(id: TaskId): Promise<TrackedTask | null>;
  /** Every task, in the order of their creation. */
  list(urgency?: Urgency): Promise<readonly TrackedTask[]>;
  /** Those of them that exist, in any order. */
  findMany(ids: readonly TaskId[]): Promise<readonly TrackedTask[]>;
  dependents(id: TaskId): Promise<readonly TrackedTask[]>;
  /** Those whose id, with or without its prefix, begins or ends with the text. */
  matching(text: string, limit: number): Promise<readonly TrackedTask[]>;
  /** A part of `list`. `status` is ours where we have a word for the tracker's. */
  page(request: PageRequest): Promise<readonly TrackedTask[]>;
  /**
   * As `page`, of tasks with a run that is not over, which have another status than this one. `pending`
   * answers their ids to a tracker that does not know them.
   */
  pageAtWork(
    request: PageRequest & { readonly status: string },
    pending: () => Promise<readonly TaskId[]>,
  ): Promise<readonly TrackedTask[]>;
  /** Number of tasks of a page without limit. */
  count(request: Pick<PageRequest, 'status' | 'unblocked'>): Promise<number>;
  /** One sentence about tasks that cannot be read; null when all can. */
  unreadable(): Promise<string | null>;
}

interface ChangeReads {
  /**
   * Answers the changes since a mark of an earlier answer; null: since the last mark that an earlier server
   * was done with. `done`: every change up to it was observed, so a later server begins there.
   */
  changes(mark: number | null, done: number | null): Promise<TrackerChanges>;
}

export type TrackerReads = TaskReads & ChangeReads;

/** What people may change of a task; an absent field stays. */
export interface TaskFields {
  readonly title?: string;
  readonly description?: string;
  readonly priority?: number;
  /** Replace the labels, but those that say how an attempt ended. */
  readonly labels?: readonly string[];
}

export interface TrackerWrites {
  /**
   * One task for each `requestId`: a later call gets the task of the first, whatever it asks for.
   * The built-in tracker writes both in one transaction; bd cannot, so a crash between them leaves a
   * task without its request.
   * @throws task_not_found when a dependency does not exist (nothing is created)
   * @throws invalid_params when a field does not fit
   */
  create(task: NewTask, requestId?: string): Promise<TrackedTask>;
  /**
   * The first depends on the second. Adding it again succeeds. Refusals: task_not_found,
   * dependency_cycle.
   */
  addDependency(dependent: TaskId, prerequisite: TaskId): Promise<Acceptance>;
  /** Removing what is not there succeeds. Refusal: task_not_found. */
  removeDependency(dependent: TaskId, prerequisite: TaskId): Promise<Acceptance>;
  /** Refusal: task_not_found. @throws invalid_params when a field does not fit */
  edit(id: TaskId, fields: TaskFields): Promise<Acceptance>;
  /** Refusals: task_not_found; event_not_allowed while other tasks depend on it. */
  remove(id: TaskId): Promise<Acceptance>;
  /**
   * Leaves a comment on a task, for people who look there; a task that does not exist gets none.
   */
  note(id: TaskId, text: string, fence?: Fence): Promise<void>;
}

/** Each function writes one change of status at once. */
export interface StatusWrites {
  /**
   * Marks the task started for the actor of this service (`bd start`): only when it is open, held
   * by nobody else, and its dependencies are complete at this moment. Removes the labels of an
   * earlier end. Claiming what we hold succeeds. Refusals: task_not_found, dependencies_unmet,
   * tracker_conflict.
   */
  claim(id: TaskId, fence?: Fence): Promise<Acceptance>;
  /**
   * Opens a task that we hold, with a label that says how the attempt ended, or none when another
   * follows by itself. Leaves alone what others hold.
   */
  release(id: TaskId, label: EndLabel, fence?: Fence): Promise<void>;
  /**
   * Refusals: task_not_found, dependencies_unmet. Closing a closed task succeeds and keeps the
   * first reason and time.
   */
  close(id: TaskId, reason: string, fence?: Fence): Promise<Acceptance>;
  /**
   * Opens a closed, failed or cancelled task, or one that somebody else has taken, and clears
   * assignee and end labels. Refusal: task_not_found.
   */
  reopen(id: TaskId, fence?: Fence): Promise<Acceptance>;
}

interface StatusPreparation {
  /** Writes a change of status for a transition, or says what its commit must write. */
  prepare(change: StatusChange, preparation: Preparation): Promise<PreparedChange>;
}

export interface TrackerHealth {
  /** `detail` is one sentence, for /health. Never rejects. */
  check(): Promise<{ readonly ok: boolean; readonly detail: string }>;
}

/**
 * The tasks: which exist, what they depend on, their coarse status. A refusal that
 * users can meet is a value; a method rejects only when the tracker itself cannot be used
 * (`ServiceError<'tracker_unavailable'>`). Every write is durable when its promise resolves, and
 * idempotent.
 */
export type Tracker = TrackerInfo &
  TrackerReads &
  TrackerWrites &
  StatusWrites &
  StatusPreparation &
  TrackerHealth;

/** A fence that stops a correction of an idle task when a run has begun meanwhile. */
export const onlyWhileIdle =
  (isPending: (taskId: TaskId) => boolean, id: TaskId): Fence =>
  () => {
    if (isPending(id))
      throw new ServiceError('event_not_allowed', {
        task_id: id,
        event: 'release',
        state: 'started',
        allowed: [],
      });
  };

/** Swallows the refusal of `onlyWhileIdle`. */
export const ignoreStartedRun = (error: unknown): void => {
  if (!isServiceError(error) || error.code !== 'event_not_allowed') throw error;
};

/** @throws task_not_found with all of them, when there are any */
export const refuseUnknown = ([id, ...others]: readonly TaskId[]): void => {
  if (id !== undefined)
    throw new ServiceError('task_not_found', {
      task_id: id,
      ...(others.length === 0 ? {} : { others }),
    });
};

/** The reason of a close by hand, in the tracker, where none was given. */
export const defaultCloseReason = 'Closed by hand with agent close';

export const carryOut = async (
  tracker: StatusWrites,
  change: StatusChange,
  fence: Fence,
): Promise<Acceptance> => {
  switch (change.kind) {
    case 'claim':
      return tracker.claim(change.id, fence);
    case 'close':
      return tracker.close(change.id, change.reason, fence);
    case 'reopen':
      return tracker.reopen(change.id, fence);
    case 'release':
      await tracker.release(change.id, change.label, fence);
      return { refusal: null };
  }
};
