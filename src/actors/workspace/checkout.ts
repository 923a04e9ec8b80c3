import { join } from 'node:path';
import { changesBetween } from './commits.ts';
import { filterFlags, filterRefusal } from './filters.ts';
import { reasonIn, required } from './git.ts';
import { type GitDirs, readHead } from './git-dirs.ts';
import { requirePlainLogs, whileHeadIsLocked } from './head-lock.ts';
import { type Checkout, findObstacle, type Stopped, stop } from './obstacles.ts';
import { isPresent } from './plain.ts';

interface Move {
  readonly head: string;
  readonly target: string;
  readonly signal?: AbortSignal | undefined;
}

const unfinished = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply', 'BISECT_LOG'];
const inTheWay = /^error: (?:Entry|Updating|Untracked working tree file) '(.+?)'/gm;

const filesIn = (stderr: string): readonly string[] => [...stderr.matchAll(inTheWay)].flatMap(([, name]) => name ?? []);

/** Puts the work into the user's files and moves the branch, or does nothing of both. */
const moveFiles = async (
  dirs: GitDirs,
  { index }: Checkout,
  { head, target, signal }: Move,
  flags: readonly string[],
): Promise<Stopped | null> => {
  const { userGit: git, repository } = dirs;
  const where = { cwd: repository.top, env: { GIT_WORK_TREE: repository.top, GIT_INDEX_FILE: index } };
  const change = (from: string, to: string) => [...flags, 'read-tree', '-m', '-u', from, to];
  signal?.throwIfAborted();
  // From here on nothing is cut short: half a checkout would be worse than one that is taken back. Git looks at every path
  // before it changes the first one; what only looks changed, by its times, is looked at again.
  let changed = await git(change(head, target), where);
  if (!changed.ok) {
    await git([...flags, 'update-index', '-q', '--refresh'], where);
    signal?.throwIfAborted();
    changed = await git(change(head, target), where);
  }
  if (!changed.ok) {
    const files = filesIn(changed.stderr);
    return files.length > 0
      ? stop('the project folder has changes in the same files that are not committed', files)
      : stop(reasonIn(changed.stderr) || 'git did not merge');
  }
  if (signal?.aborted === true) {
    await required('the files could not be changed back', git(change(target, head), where));
    signal.throwIfAborted();
  }
  const moved = await git(['update-ref', '-m', 'agent merge', 'HEAD', target, head]);
  if (moved.ok) return null;
  await required('the files could not be changed back', git(change(target, head), where));
  return stop(reasonIn(moved.stderr));
};

/** Moves the user's checkout from its commit to another. @returns what is in the way; then nothing was changed */
export const intoCheckout = async (dirs: GitDirs, checkout: Checkout, move: Move): Promise<Stopped | null> => {
  const { gitDir } = dirs.repository;
  for (const name of unfinished)
    if (await isPresent(join(gitDir, name))) return stop(`the project is in the middle of something: ${name}`);
  return whileHeadIsLocked(gitDir, async () => {
    if ((await readHead(gitDir)) !== dirs.head) return stop('the project has switched to another branch meanwhile');
    await requirePlainLogs(dirs, checkout.branch ?? '');
    const changes = await changesBetween(dirs, move.head, move.target, move.signal);
    const obstacle =
      (await findObstacle(dirs, move, changes)) ?? (await filterRefusal(dirs, checkout, move.target, changes));
    if (obstacle !== null) return obstacle;
    return moveFiles(dirs, checkout, move, await filterFlags(dirs, checkout.filters));
  });
};
