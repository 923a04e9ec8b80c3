import type { TaskId } from '../../machines/task.ts';
import type { NewEntry } from '../store/port.ts';
import { entry } from './event-types.ts';

export interface MergedWork {
  readonly into: string;
  readonly commit: string;
}

/** The log entry of a merge. It stays when the branch and its record are pruned. */
export const mergeData = ({ into, commit }: MergedWork) => ({
  level: 'info',
  message: `merged into ${into} (${commit.slice(0, 12)})`,
  merge_commit: commit,
});

export const mergeEntry = (
  taskId: TaskId,
  attempt: number,
  merged: MergedWork,
  at: number,
): NewEntry => entry(taskId, attempt, 'log', at, mergeData(merged));
