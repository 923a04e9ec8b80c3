import type { AttemptInput } from '../../machines/task.ts';
import { findCheckedOut } from './checked-out.ts';
import { commitOf, contains } from './commits.ts';
import type { GitDirs } from './git-dirs.ts';
import type { Start } from './start.ts';
import { firstBase, type WorkRecords } from './work-records.ts';

export interface ContinuedBranch {
  readonly start: Start;
  /** Null: the work goes on with a branch of its own, since a working tree has this one. */
  readonly branch: string | null;
  readonly firstBase: string;
}

/**
 * The branch of the attempt that a review sent back, with commits that a person added. Null when the
 * branch is gone or merged: then the attempt begins as the first one did.
 */
export const findContinuedBranch = async (
  dirs: GitDirs,
  records: WorkRecords,
  { taskId, review }: AttemptInput,
): Promise<ContinuedBranch | null> => {
  const continues = review?.continues ?? null;
  const record = continues === null ? null : await records.read(taskId, continues);
  if (record?.commit == null || record.merged !== null || record.discarded !== null) return null;
  if (record.kind !== dirs.repository.kind) return null;
  const ref = `refs/heads/${record.branch}`;
  const tip = await commitOf(dirs, ref);
  if (tip === null || !(await contains(dirs, tip, record.commit))) return null;
  const isCheckedOut = (await findCheckedOut(dirs.repository)).has(ref);
  return {
    start: {
      commit: tip,
      notes: [`Your folder has the work of attempt ${record.attempt} (branch ${record.branch}).`],
      conflicts: [],
      includes: record.includes,
    },
    branch: isCheckedOut ? null : record.branch,
    firstBase: firstBase(record),
  };
};
