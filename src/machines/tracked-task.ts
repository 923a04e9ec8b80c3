import type { TaskId } from './task.ts';

/** The issue that a task came from. */
interface TaskSource {
  readonly type: 'github';
  /** Its page. */
  readonly url: string;
  readonly number: number;
}

const issuePage = /^https?:\/\/[^/\s]+\/[\w.-]+\/[\w.-]+\/issues\/(\d{1,15})$/;

/** Null for a reference that is no page of an issue. */
export const sourceOf = (externalRef: string | undefined): TaskSource | null => {
  const [url = '', number] = issuePage.exec(externalRef ?? '') ?? [];
  return number === undefined ? null : { type: 'github', url, number: Number(number) };
};

/**
 * `status` is the tracker's own word (`open`, `in_progress`, `closed`, or another, shown as it is).
 * `dependencies` has the blocking ones only; `unmet` those that are not done.
 */
export interface TrackedTask {
  readonly id: TaskId;
  readonly title: string;
  readonly description: string;
  readonly status: string;
  /** 0 (first) to 4. */
  readonly priority: number;
  readonly labels: readonly string[];
  readonly assignee: string | null;
  readonly dependencies: readonly TaskId[];
  readonly unmet: readonly TaskId[];
  readonly ready: boolean;
  /** RFC 3339, UTC, milliseconds. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly closedAt: string | null;
  readonly closeReason?: string;
  /** Where it came from: the page of an issue, or `plan:` and a key. */
  readonly externalRef?: string;
}

export interface NewTask {
  /** One line of 1 to 500 bytes. */
  readonly title: string;
  /** At most 64 KiB. */
  readonly description: string;
  readonly priority: number;
  readonly labels: readonly string[];
  readonly dependencies: readonly TaskId[];
  readonly externalRef?: string;
}

/** Our status for the tracker's; an unknown one is shown as it is. */
export const statusInTracker = ({
  status,
  labels,
}: Pick<TrackedTask, 'status' | 'labels'>): string => {
  if (status === 'closed') return 'complete';
  if (status === 'in_progress') return 'started';
  if (status !== 'open') return status;
  if (labels.includes('agent-failed')) return 'failed';
  return labels.includes('agent-cancelled') ? 'cancelled' : 'queued';
};

/** The assignee or status that keeps `actor` from claiming an open task; null without one. */
export const holderOf = (
  { status, assignee }: Pick<TrackedTask, 'status' | 'assignee'>,
  actor: string,
): string | null => {
  if (assignee !== null && assignee !== actor) return assignee;
  if (status === 'open' || (status === 'in_progress' && assignee === actor)) return null;
  return status === 'in_progress' ? 'somebody (status in_progress)' : `its ${status} state`;
};

/** True when somebody else works on the task or will; reopening it takes it back. */
export const isTaken = (task: Pick<TrackedTask, 'status' | 'assignee'>, actor: string): boolean =>
  ['open', 'in_progress'].includes(task.status) && holderOf(task, actor) !== null;

/** By the time of creation. */
export type PageOrder = 'oldest' | 'newest';

export interface PageRequest {
  /**
   * Our status (queued, started, complete, failed, cancelled), or a status of the tracker that is
   * none of ours; absent: all tasks.
   */
  readonly status?: string;
  /** Only tasks whose dependencies are complete. */
  readonly unblocked?: boolean;
  /** Default: oldest first. */
  readonly order?: PageOrder;
  /** The last task of the page before. */
  readonly after?: { readonly createdAt: string; readonly id: string };
  readonly limit: number;
}
