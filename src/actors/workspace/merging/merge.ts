import { join } from 'node:path';
import type {
  MergeConflict,
  Merged,
  QueueMember,
} from '../../../machines/merge-queue/merge-queue-context.ts';
import { changesBetween, commitTree, commonOf, findObjects, mergeTrees } from '../git/commits.ts';
import { GitError } from '../git/git.ts';
import { type GitDirs, readHead } from '../git/git-dirs.ts';
import { isPresent } from '../git/plain.ts';
import { filterRefusal } from './filters.ts';
import { type Checkout, findObstacle, type Stopped, stop } from './obstacles.ts';
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
  const act = async (): Promise<Stopped | null> =>
    (await findObstacle(dirs, update, changes)) ?? updateFiles(dirs, checkout, update);
  // Who only looks is in nobody's way.
  if (update.isTrial) return act();
  return withUserLocks(gitDir, checkout.index, async () => {
    if ((await readHead(gitDir)) !== dirs.head)
      return stop('the project switched to another branch during the merge');
    await requirePlainLogs(dirs, checkout.branch ?? '');
    return act();
  });
};

/** A commit of the train, or of the branch that it is built on. */
export interface Side {
  readonly commit: string;
  readonly tree: string;
}

export const findSide = async (dirs: GitDirs, name: string): Promise<Side | null> => {
  const [commit, tree] = await findObjects(dirs, [`${name}^{commit}`, `${name}^{tree}`]);
  return commit === null || tree === null ? null : { commit, tree };
};

export interface Merge {
  /** The branch of the attempt, and the commit on it. */
  readonly branch: string;
  readonly commit: string;
  readonly style: QueueMember['style'];
  readonly role: string;
  /** The name of the project's branch. */
  readonly into: string;
  /** As of `mergeBase`. */
  readonly base: string | null;
  /** As of `Regenerated`. */
  readonly resolve?: (
    ours: Side,
    conflicted: { readonly tree: string; readonly conflicts: readonly string[] },
  ) => Promise<string | { readonly why: string } | null>;
}

const filesAtMost = 100;

/** Two sides that a person or an agent must bring together. The first files are named. */
export const sameLines = (
  into: string,
  branch: string,
  files: readonly string[],
): MergeConflict => {
  const many = files.length > filesAtMost ? ` of ${files.length} files` : '';
  const why = `both ${into} and ${branch} changed the same lines${many}`;
  return { status: 'conflict', branch, why, files: files.slice(0, filesAtMost), same_lines: true };
};

/** Merges a commit onto a side, without a file of the user. @returns the new side, or why there is none */
export const mergeOnto = async (
  dirs: GitDirs,
  ours: Side,
  { branch, commit, style, role, into, base, resolve = async () => null }: Merge,
  signal?: AbortSignal,
): Promise<Side | Exclude<Merged, { status: 'merged' }>> => {
  const conflict = (why: string, files: readonly string[] = []) => ({
    status: 'conflict' as const,
    branch,
    why,
    files,
  });
  const theirs = await findSide(dirs, commit);
  if (theirs === null)
    return conflict(`the work is gone: the repository lacks the commit ${commit}`);
  const common = await commonOf(dirs, ours.commit, commit);
  if (common === commit) return { status: 'nothing', commit };
  const isAhead = common === ours.commit;
  if (style === 'ff')
    return isAhead
      ? theirs
      : {
          ...conflict(`${into} has moved on since the attempt began; it cannot be fast-forwarded`),
          moved_on: true,
        };
  try {
    const merged = isAhead ? theirs : await mergeTrees(dirs, ours.commit, commit, signal, base);
    let { tree } = merged;
    if ('conflicts' in merged && merged.conflicts !== undefined) {
      const { conflicts } = merged;
      const resolved = await resolve(ours, { tree, conflicts });
      if (resolved === null) return sameLines(into, branch, conflicts);
      if (typeof resolved !== 'string') return conflict(resolved.why, conflicts);
      tree = resolved;
    }
    if (tree === ours.tree) return { status: 'nothing', commit: ours.commit };
    const built = { tree, parents: [ours.commit], message: 'A car of a merge train', role };
    return { commit: await commitTree(dirs, built, signal), tree };
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof GitError) return conflict(error.message);
    throw error;
  }
};
