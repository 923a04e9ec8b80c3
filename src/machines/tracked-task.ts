import type { TaskId } from './task.ts';

/**
 * A task as the tracker holds it. `status` is the tracker's own word (`open`, `in_progress`, `closed`, or any other,
 * which is shown as it is); `dependencies` are the blocking ones only; `unmet` are those of them not yet done.
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
  /** Whether the tracker would hand it out now: open, and nothing keeps it back. */
  readonly ready: boolean;
  /** RFC 3339, UTC, milliseconds. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly closedAt: string | null;
}

/** The tracker's words in ours (CONTRACT 2); a word that we do not know is shown as it is. */
export const statusInTracker = ({ status, labels }: Pick<TrackedTask, 'status' | 'labels'>): string => {
  if (status === 'closed') return 'complete';
  if (status === 'in_progress') return 'started';
  if (status !== 'open') return status;
  if (labels.includes('agent-failed')) return 'failed';
  return labels.includes('agent-cancelled') ? 'cancelled' : 'queued';
};

/** Who or what keeps `actor` from claiming a task that is not closed, or null when it is free or already the actor's. */
export const holderOf = (
  { status, assignee }: Pick<TrackedTask, 'status' | 'assignee'>,
  actor: string,
): string | null => {
  if (assignee !== null && assignee !== actor) return assignee;
  if (status === 'open' || (status === 'in_progress' && assignee === actor)) return null;
  return status === 'in_progress' ? 'somebody (status in_progress)' : `its ${status} state`;
};
