import type { TaskId } from '../../machines/task.ts';
import type { NewEntry } from '../store/port.ts';
import { decisionData } from './decision.ts';
import { entry } from './event-types.ts';

export interface MergedWork {
  readonly into: string;
  readonly commit: string;
  /** The commands that passed on its tree; absent: none ran. */
  readonly tested?: readonly string[];
  /** A person said that it lands without a test. */
  readonly byWord?: boolean;
}

const testedWords = ({ tested, byWord }: MergedWork): string => {
  if (tested !== undefined) return `tested with ${tested.join(', ')}`;
  return byWord === true ? 'not tested, as a person said' : 'not tested';
};

/** The data of the log entry of a merge. It stays when the branch and its record are pruned. */
export const mergeData = (merged: MergedWork) => ({
  level: 'info',
  message: `merged into ${merged.into} (${merged.commit.slice(0, 12)}), ${testedWords(merged)}`,
  merge_commit: merged.commit,
});

/** The log entry of a merge by a person. */
export const mergeEntry = (
  taskId: TaskId,
  attempt: number,
  merged: MergedWork,
  at: number,
): NewEntry => {
  const { message, merge_commit } = mergeData(merged);
  const decided = decisionData({ kind: 'merged', said: merged.into }, message);
  return entry(taskId, attempt, 'log', at, { ...decided, merge_commit });
};
