import { intoCheckout } from './checkout.ts';
import { combine, commitTree, commonOf, findObjects } from './commits.ts';
import { GitError } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import type { Checkout } from './obstacles.ts';
import type { Merged, MergeMode } from './port.ts';

export interface Merge {
  readonly branch: string;
  readonly commit: string;
  readonly mode: Exclude<MergeMode, 'none'>;
  /** Of the one commit that a squash makes. */
  readonly message: string;
  readonly role: string;
  readonly signal?: AbortSignal | undefined;
}

interface Side {
  readonly commit: string;
  readonly tree: string;
}

/** The commit that the user's branch is moved to; the files in conflict; null when the branch has all of it already. */
const targetOf = async (
  dirs: GitDirs,
  ours: Side,
  theirs: Side,
  { mode, message, role, signal, isAhead }: Merge & { readonly isAhead: boolean },
): Promise<string | readonly string[] | null> => {
  if (mode === 'ff') return theirs.commit;
  const combined = isAhead ? theirs : await combine(dirs, ours.commit, theirs.commit, signal);
  if ('conflicts' in combined) return combined.conflicts;
  if (ours.tree === combined.tree) return null;
  return commitTree(dirs, { tree: combined.tree, parents: [ours.commit], message, role }, signal);
};

/**
 * Brings a commit into the branch that the project's own working tree is on. Whatever stands in the way changes nothing:
 * a conflict, changes of the user's own in the same files, no branch at all.
 */
export const mergeInto = async (dirs: GitDirs, checkout: Checkout, merge: Merge): Promise<Merged> => {
  const { branch, commit, mode, signal } = merge;
  const conflict = (why: string, files: readonly string[] = []): Merged => ({ status: 'conflict', branch, why, files });
  const { into } = checkout;
  if (checkout.branch === null) return conflict('the project is on no branch (detached HEAD)');
  try {
    const [head, headTree, tree] = await findObjects(dirs, ['HEAD^{commit}', 'HEAD^{tree}', `${commit}^{tree}`]);
    if (head === null || headTree === null) return conflict('the branch of the project has no commit');
    if (tree === null) return conflict(`the work is gone: the repository lacks the commit ${commit}`);
    const common = await commonOf(dirs, head, commit);
    if (common === commit) return { status: 'nothing' };
    const isAhead = common === head;
    if (mode === 'ff' && !isAhead)
      return conflict(`${into} has moved on since the attempt began; it cannot be fast-forwarded`);
    const ours = { commit: head, tree: headTree };
    const target = await targetOf(dirs, ours, { commit, tree }, { ...merge, isAhead });
    if (target === null) return { status: 'nothing' };
    if (typeof target !== 'string') return conflict(`both ${into} and ${branch} changed the same lines`, target);
    const stopped = await intoCheckout(dirs, checkout, { head, target, signal });
    return stopped === null ? { status: 'merged', commit: target, into } : conflict(stopped.why, stopped.files);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof GitError) return conflict(error.message);
    throw error;
  }
};
