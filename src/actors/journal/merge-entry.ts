import type { TaskId } from '../../machines/task.ts';
import type { NewEntry } from '../store/port.ts';
import { decisionData } from './decision.ts';
import { entry } from './event-types.ts';

export interface MergedWork {
  readonly into: string;
  readonly commit: string;
  /** The commands that passed on its tree; absent: none ran. */
  readonly tested?: readonly string[];
  readonly tested_seconds?: number;
  /** A person said that it lands without a test. */
  readonly byWord?: boolean;
  /** Its work was taken back. */
  readonly undone?: boolean;
}

const testedWords = ({ tested, tested_seconds: seconds, byWord }: MergedWork): string => {
  if (tested !== undefined)
    return `tested with ${tested.join(', ')}${seconds === undefined ? '' : `, ${seconds} s`}`;
  return byWord === true ? 'not tested, as a person said' : 'not tested';
};

/** The data of the log entry of a merge. It stays when the branch and its record are pruned. */
export const mergeData = (merged: MergedWork) => {
  const { into, commit, undone = false } = merged;
  const what = `${into} (${commit.slice(0, 12)}), ${testedWords(merged)}`;
  return undone
    ? { level: 'info', message: `undone in ${what}` }
    : { level: 'info', message: `merged into ${what}`, merge_commit: commit };
};

/** The log entry of a merge by a person. */
export const mergeEntry = (
  taskId: TaskId,
  attempt: number,
  merged: MergedWork,
  at: number,
): NewEntry => {
  const { message, ...data } = mergeData(merged);
  const kind = merged.undone === true ? 'undone' : 'merged';
  const decided = decisionData({ kind, said: merged.into }, message);
  return entry(taskId, attempt, 'log', at, { ...decided, ...data });
};
