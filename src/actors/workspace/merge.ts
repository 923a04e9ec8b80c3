import { intoCheckout } from './checkout.ts';
import { combine, commitOf, commitTree, contains, treeOf } from './commits.ts';
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

/** The commit that the user's branch is moved to, or null when it has all of it already. */
const targetOf = async (
  dirs: GitDirs,
  head: string,
  { commit, mode, message, role, signal }: Merge,
): Promise<string | readonly string[] | null> => {
  if (mode === 'ff') return commit;
  const combined = await combine(dirs, head, commit, signal);
  if ('conflicts' in combined) return combined.conflicts;
  if ((await treeOf(dirs, head)) === combined.tree) return null;
  return commitTree(dirs, { tree: combined.tree, parents: [head], message, role }, signal);
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
    const head = await commitOf(dirs, 'HEAD');
    if (head === null) return conflict('the branch of the project has no commit');
    if (await contains(dirs, head, commit)) return { status: 'nothing' };
    if (mode === 'ff' && !(await contains(dirs, commit, head)))
      return conflict(`${into} has moved on since the attempt began; it cannot be fast-forwarded`);
    const target = await targetOf(dirs, head, merge);
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
