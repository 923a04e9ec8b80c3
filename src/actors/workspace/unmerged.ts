import { commitOf, contains } from './commits.ts';
import type { GitDirs } from './git-dirs.ts';
import type { MergeFirst } from './port.ts';
import type { WorkRecord, WorkRecords } from './work-records.ts';

/**
 * The first work to merge before this attempt's, since the attempt began with it. Each is reviewed
 * and merged under its own name.
 */
export const findUnmerged = async (
  dirs: GitDirs,
  records: WorkRecords,
  { includes }: WorkRecord,
): Promise<MergeFirst | null> => {
  const head = await commitOf(dirs, 'HEAD');
  if (head === null) return null;
  for (const { task_id, attempt, commit } of includes) {
    const record = await records.read(task_id, attempt);
    const isIn =
      (await contains(dirs, head, commit)) ||
      (record?.merged != null && (await contains(dirs, head, record.merged)));
    if (isIn) continue;
    return { task_id, attempt, complete: record?.complete === true };
  }
  return null;
};
