import { join } from 'node:path';
import { changesBetween } from './commits.ts';
import { filterRefusal } from './filters.ts';
import { type GitDirs, readHead } from './git-dirs.ts';
import { moveFiles } from './move-files.ts';
import { type Checkout, findObstacle, type Stopped, stop } from './obstacles.ts';
import { isPresent } from './plain.ts';
import { requirePlainLogs, withUserLocks } from './user-locks.ts';

interface Move {
  readonly head: string;
  readonly target: string;
  readonly signal?: AbortSignal | undefined;
}

const unfinished = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply', 'BISECT_LOG'];
/** Moves the user's checkout from its commit to another. @returns what is in the way; then nothing was changed */
export const intoCheckout = async (dirs: GitDirs, checkout: Checkout, move: Move): Promise<Stopped | null> => {
  const { gitDir } = dirs.repository;
  for (const name of unfinished)
    if (await isPresent(join(gitDir, name))) return stop(`the project is in the middle of something: ${name}`);
  // What takes long is looked at before anything of the user's is locked.
  const changes = await changesBetween(dirs, move.head, move.target, move.signal);
  const refused = await filterRefusal(dirs, checkout, move.target, changes);
  if (refused !== null) return refused;
  return withUserLocks(gitDir, checkout.index, async () => {
    if ((await readHead(gitDir)) !== dirs.head) return stop('the project has switched to another branch meanwhile');
    await requirePlainLogs(dirs, checkout.branch ?? '');
    return (await findObstacle(dirs, move, changes)) ?? (await moveFiles(dirs, checkout, move));
  });
};
