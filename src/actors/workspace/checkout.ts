import { join } from 'node:path';
import { changesBetween } from './commits.ts';
import { filterRefusal } from './filters.ts';
import { type GitDirs, readHead } from './git-dirs.ts';
import { type Checkout, findObstacle, type Stopped, stop } from './obstacles.ts';
import { isPresent } from './plain.ts';
import { type Update, updateFiles } from './update-files.ts';
import { requirePlainLogs, withUserLocks } from './user-locks.ts';

const unfinished = [
  'MERGE_HEAD',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
  'rebase-merge',
  'rebase-apply',
  'BISECT_LOG',
];
/**
 * Updates the user's checkout from one commit to another. @returns the obstacle, if any; then
 * nothing changed
 */
export const updateCheckout = async (
  dirs: GitDirs,
  checkout: Checkout,
  update: Update,
): Promise<Stopped | null> => {
  const { gitDir } = dirs.repository;
  for (const name of unfinished)
    if (await isPresent(join(gitDir, name)))
      return stop(
        `git has an unfinished merge, rebase or bisect here (${name}); finish or abort it first`,
      );
  // Slow checks come before the locks of the user's repository.
  const changes = await changesBetween(dirs, update.head, update.target, update.signal);
  const refused = await filterRefusal(dirs, checkout, update.target, changes);
  if (refused !== null) return refused;
  return withUserLocks(gitDir, checkout.index, async () => {
    if ((await readHead(gitDir)) !== dirs.head)
      return stop('the project switched to another branch during the merge');
    await requirePlainLogs(dirs, checkout.branch ?? '');
    return (
      (await findObstacle(dirs, update, changes)) ?? (await updateFiles(dirs, checkout, update))
    );
  });
};
