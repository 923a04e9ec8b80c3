import { commitOf, contains } from './commits.ts';
import type { GitDirs } from './git-dirs.ts';
import type { WorkRecord, WorkRecords } from './work-records.ts';

/**
 * The first work to merge before this attempt's, since the attempt began with it. Each is reviewed
 * and merged under its own name. @returns the reason, or null
 */
export const findUnmerged = async (
  dirs: GitDirs,
  records: WorkRecords,
  { includes }: WorkRecord,
): Promise<string | null> => {
  const head = await commitOf(dirs, 'HEAD');
  if (head === null) return null;
  for (const { task_id, attempt, commit } of includes) {
    const record = await records.read(task_id, attempt);
    const isIn =
      (await contains(dirs, head, commit)) ||
      (record?.merged != null && (await contains(dirs, head, record.merged)));
    if (isIn) continue;
    const force = record?.complete === true ? '' : ' --force';
    return `${task_id}'s work is in it and is not merged yet; merge it first: agent merge ${task_id} --attempt ${attempt}${force}`;
  }
  return null;
};
