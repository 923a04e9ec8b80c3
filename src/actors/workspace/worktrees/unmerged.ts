import type { Car, MergeFirst } from '../../../machines/merge-queue/merge-queue-context.ts';
import { commitOf, contains } from '../git/commits.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import type { WorkRecord, WorkRecords } from '../git/work-records.ts';

/**
 * The commit that saved work is at: with the commits that a person added to its branch. Null when
 * the branch does not have the commit of the attempt any more.
 */
export const tipOfWork = async (
  dirs: GitDirs,
  records: WorkRecords,
  { task_id, attempt, branch, commit }: WorkRecord & { readonly commit: string },
): Promise<string | null> => {
  const tip = await commitOf(dirs, `refs/heads/${branch}`);
  // Without its branch the commit is there until git removes it.
  if (tip === null || tip === commit) return commit;
  // A later attempt that goes on with the branch is merged under its own number.
  const isContinued = (await records.all()).some(
    (other) => other.task_id === task_id && other.attempt > attempt && other.branch === branch,
  );
  if (isContinued) return commit;
  return (await contains(dirs, tip, commit)) ? tip : null;
};

/** A later attempt of the same task goes on from that commit, and is merged. */
const isInLater = async (
  dirs: GitDirs,
  records: WorkRecords,
  head: string,
  included: WorkRecord['includes'][number],
): Promise<boolean> => {
  const later = await records.latest(included.task_id);
  if (later?.commit == null || later.merged === null || later.attempt <= included.attempt)
    return false;
  return (
    (await contains(dirs, head, later.merged)) &&
    (await contains(dirs, later.commit, included.commit))
  );
};

/**
 * The first work to merge before this attempt's, since the attempt began with it. Each is reviewed
 * and merged under its own name. `cars` are merged before it.
 */
export const findUnmerged = async (
  dirs: GitDirs,
  records: WorkRecords,
  { includes }: WorkRecord,
  cars: readonly Pick<Car, 'taskId' | 'attempt'>[],
): Promise<MergeFirst | null> => {
  const head = await commitOf(dirs, 'HEAD');
  if (head === null) return null;
  for (const included of includes) {
    const { task_id, attempt, commit } = included;
    const record = await records.read(task_id, attempt);
    const isIn =
      cars.some((car) => car.taskId === task_id && car.attempt === attempt) ||
      (await contains(dirs, head, commit)) ||
      (record?.merged != null && (await contains(dirs, head, record.merged))) ||
      (await isInLater(dirs, records, head, included));
    if (isIn) continue;
    return { task_id, attempt, complete: record?.complete === true };
  }
  return null;
};
