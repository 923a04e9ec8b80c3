import { join } from 'node:path';
import { changesBetween, commitTree, commonOf, findObjects, mergeTrees } from '../git/commits.ts';
import { GitError } from '../git/git.ts';
import { type GitDirs, readHead } from '../git/git-dirs.ts';
import { isPresent } from '../git/plain.ts';
import type { Merged, MergeMode, MergeProof } from '../port.ts';
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
const updateCheckout = async (
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

export interface Merge {
  readonly branch: string;
  readonly commit: string;
  readonly mode: Exclude<MergeMode, 'none'>;
  readonly message: string;
  readonly role: string;
  readonly signal?: AbortSignal | undefined;
  /** The branch moves only to a tree that passed. */
  readonly proof?: Pick<MergeProof, 'commands' | 'hasPassed'> | undefined;
}

/** Nothing was changed: the tree is not tested. */
export interface Unproven {
  readonly status: 'unproven';
  readonly branch: string;
  readonly commit: string;
  readonly tree: string;
}

interface Side {
  readonly commit: string;
  readonly tree: string;
}

const inOneLine = (command: string): string => command.replace(/\s+/g, ' ').trim();

/**
 * The commit that the user's branch moves to; the files in conflict; null when the branch has all
 * of it.
 */
const targetOf = async (
  dirs: GitDirs,
  ours: Side,
  theirs: Side,
  { mode, message, role, signal, proof, isAhead }: Merge & { readonly isAhead: boolean },
): Promise<Side | readonly string[] | null> => {
  if (mode === 'ff') return theirs;
  const merged = isAhead ? theirs : await mergeTrees(dirs, ours.commit, theirs.commit, signal);
  if ('conflicts' in merged) return merged.conflicts;
  if (ours.tree === merged.tree) return null;
  const { tree } = merged;
  const evidence = proof?.commands.map((command) => `Verified: ${inOneLine(command)}\n`) ?? [];
  const trailers = proof === undefined ? '' : `${evidence.join('')}Verified-Tree: ${tree}\n`;
  const commit = { tree, parents: [ours.commit], message: message + trailers, role };
  return { commit: await commitTree(dirs, commit, signal), tree };
};

/**
 * Merges a commit into the branch of the project's own working tree. An obstacle leaves everything
 * unchanged: a conflict, uncommitted changes in the same files, or a detached HEAD.
 */
export const mergeInto = async (
  dirs: GitDirs,
  checkout: Checkout,
  merge: Merge,
): Promise<Merged | Unproven> => {
  const { branch, commit, mode, signal, proof } = merge;
  const conflict = (why: string, files: readonly string[] = []) => ({
    status: 'conflict' as const,
    branch,
    why,
    files,
  });
  const { into } = checkout;
  if (checkout.branch === null)
    return { ...conflict('the project is on no branch (detached HEAD)'), detached: true };
  try {
    const [head, headTree, tree] = await findObjects(dirs, [
      'HEAD^{commit}',
      'HEAD^{tree}',
      `${commit}^{tree}`,
    ]);
    if (head === null || headTree === null)
      return conflict('the branch of the project has no commit');
    if (tree === null)
      return conflict(`the work is gone: the repository lacks the commit ${commit}`);
    const common = await commonOf(dirs, head, commit);
    if (common === commit) return { status: 'nothing', commit };
    const isAhead = common === head;
    if (mode === 'ff' && !isAhead)
      return {
        status: 'conflict',
        branch,
        why: `${into} has moved on since the attempt began; it cannot be fast-forwarded`,
        files: [],
        moved_on: true,
      };
    const ours = { commit: head, tree: headTree };
    const target = await targetOf(dirs, ours, { commit, tree }, { ...merge, isAhead });
    if (target === null) return { status: 'nothing', commit: head };
    if (!('commit' in target))
      return {
        status: 'conflict',
        branch,
        why: `both ${into} and ${branch} changed the same lines`,
        files: target,
        same_lines: true,
      };
    if (proof?.hasPassed(target.tree) === false) return { status: 'unproven', branch, ...target };
    const update = { head, target: target.commit, signal };
    const stopped = await updateCheckout(dirs, checkout, update);
    const tested = proof === undefined ? {} : { tested: proof.commands };
    return stopped === null
      ? { status: 'merged', commit: target.commit, into, ...tested }
      : conflict(stopped.why, stopped.files);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof GitError) return conflict(error.message);
    throw error;
  }
};
