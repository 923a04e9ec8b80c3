import { GitError, reasonIn } from './git.ts';
import type { Merged, MergeMode } from './port.ts';
import { combine, commitTree, contains, headOf, type Repository, refuseFilters } from './repository.ts';

export interface Merge {
  readonly branch: string;
  readonly commit: string;
  readonly mode: Exclude<MergeMode, 'none'>;
  /** Of the one commit that a squash makes. */
  readonly message: string;
  readonly role: string;
  readonly signal: AbortSignal | undefined;
}

const overwritten = /^\t(.+)$/gm;

/**
 * Brings a commit into the branch that the project's own working tree is on. Whatever stands in the way changes nothing:
 * a conflict, changes of the user's own in the same files, no branch at all.
 */
export const mergeInto = async (repository: Repository, merge: Merge): Promise<Merged> => {
  const { git, gitDir, top } = repository;
  const { branch, commit, mode, message, role, signal } = merge;
  const conflict = (why: string, files: readonly string[] = []): Merged => ({ status: 'conflict', branch, why, files });

  const into = (await git(['symbolic-ref', '--quiet', '--short', 'HEAD'], { gitDir })).stdout;
  if (into === '') return conflict('the project is on no branch (detached HEAD)');
  const head = await headOf(repository);
  if (await contains(repository, head, commit)) return { status: 'nothing' };

  /** Null when the branch has all of it already. */
  const squashed = async (): Promise<string | readonly string[] | null> => {
    const combined = await combine(repository, head, commit);
    if ('conflicts' in combined) return combined.conflicts;
    const same = await git(['rev-parse', `${head}^{tree}`], { gitDir });
    if (same.stdout === combined.tree) return null;
    return commitTree(repository, { tree: combined.tree, parents: [head], message, role });
  };
  const forward = await contains(repository, commit, head);
  if (mode === 'ff' && !forward)
    return conflict(`${into} has moved on since the attempt began; it cannot be fast-forwarded`);

  try {
    await refuseFilters(repository);
    const target = mode === 'ff' ? commit : await squashed();
    if (target === null) return { status: 'nothing' };
    if (typeof target !== 'string') return conflict(`both ${into} and ${branch} changed the same lines`, target);
    signal?.throwIfAborted();
    const moved = await git(['merge', '--ff-only', '--quiet', '--no-stat', target], { gitDir, workTree: top });
    if (moved.ok) return { status: 'merged', commit: target, into };
    const files = [...moved.stderr.matchAll(overwritten)].flatMap(([, name]) => name ?? []);
    if (files.length > 0)
      return conflict('the project folder has changes in the same files that are not committed', files);
    return conflict(reasonIn(moved.stderr) || 'git did not merge');
  } catch (error) {
    if (error instanceof GitError) return conflict(error.message);
    throw error;
  }
};
