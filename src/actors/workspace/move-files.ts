import { endOrphans } from '../process/orphans.ts';
import { commitOf } from './commits.ts';
import { filterFlags } from './filters.ts';
import { type GitAnswer, GitError, reasonIn } from './git.ts';
import { type GitDirs, readHead } from './git-dirs.ts';
import { beginMove, endMove, installIndex, type MovePlaces, type MoveRecord, readMove } from './move-record.ts';
import { type Checkout, type Stopped, stop } from './obstacles.ts';
import { putBack } from './put-back.ts';
import { whileUserWaits } from './user-locks.ts';

interface Move {
  readonly head: string;
  readonly target: string;
  readonly signal?: AbortSignal | undefined;
}

const inTheWay = /^error: (?:Entry|Updating|Untracked working tree file) '(.+?)'/gm;

const filesIn = (stderr: string): readonly string[] => [...stderr.matchAll(inTheWay)].flatMap(([, name]) => name ?? []);

const sentence = (kept: readonly string[]): string =>
  `a merge was cut short; ${kept.slice(0, 10).join(', ')} changed since and stay as they are, look at them before you go on`;

/** Git changes the files. It looks at every path before it changes the first one; what only looks changed is looked at again. */
const changeFiles = async (
  { userGit: git, repository }: GitDirs,
  { index }: MovePlaces,
  { head, target, signal }: Move,
  flags: readonly string[],
): Promise<GitAnswer> => {
  const where = { cwd: repository.top, env: { GIT_WORK_TREE: repository.top, GIT_INDEX_FILE: index } };
  const change = [...flags, 'read-tree', '-m', '-u', head, target];
  const changed = await git(change, where);
  if (changed.ok || filesIn(changed.stderr).length === 0) return changed;
  await git([...flags, 'update-index', '-q', '--refresh'], where);
  signal?.throwIfAborted();
  return git(change, where);
};

/**
 * Puts the work into the user's files and moves the branch, or does nothing of both: what is under way is on disk, so that
 * the next process takes back what this one leaves half done. The branch decides: once it is moved, the move is done.
 */
export const moveFiles = async (
  dirs: GitDirs,
  { moving, index, filters }: Checkout,
  move: Move,
): Promise<Stopped | null> => {
  const { head, target, signal } = move;
  const flags = await filterFlags(dirs, filters);
  signal?.throwIfAborted();
  const ends = { kind: dirs.repository.kind, head_text: dirs.head, head, target, filters: [...filters] };
  const record = await beginMove(moving, index, ends);

  const takeBack = async (): Promise<void> => {
    const kept = await putBack(dirs, moving, record, flags).catch((error: unknown) => {
      const why = 'the project folder holds a part of the work, which is taken back before the next merge';
      throw new GitError(`${why}: ${error instanceof Error ? error.message : String(error)}`);
    });
    await endMove(moving);
    if (kept.length > 0) throw new GitError(sentence(kept));
  };

  let changed: GitAnswer;
  try {
    changed = await changeFiles(dirs, moving, move, flags);
    if (changed.ok) signal?.throwIfAborted();
  } catch (error) {
    await takeBack();
    throw error;
  }
  if (!changed.ok) {
    const files = filesIn(changed.stderr);
    // Git refused before it changed anything.
    if (files.length > 0) await endMove(moving);
    else await takeBack();
    return files.length > 0
      ? stop('the project folder has changes in the same files that are not committed', files)
      : stop(reasonIn(changed.stderr) || 'git did not merge');
  }
  const moved = await dirs.userGit(['update-ref', '-m', 'agent merge', 'HEAD', target, head]);
  if (!moved.ok) {
    await takeBack();
    return stop(reasonIn(moved.stderr));
  }
  // The work is merged. An index that cannot be written now is written before the next merge.
  const isDone = await installIndex(moving, index, record).then(
    () => true,
    () => false,
  );
  if (isDone) await endMove(moving);
  return null;
};

/** Ends a move that a crash cut short. @returns what the user must know of it, or null */
export const mendMove = async (
  dirs: GitDirs,
  { moving, index }: Pick<Checkout, 'moving' | 'index'>,
  record: MoveRecord,
): Promise<string | null> => {
  // A git that the crash left alone goes on otherwise.
  await endOrphans('GIT_INDEX_FILE', moving.index);
  return whileUserWaits(dirs.repository.gitDir, index, async () => {
    if ((await readMove(moving)) === null) return null;
    const now = await commitOf(dirs, 'HEAD');
    const isSameBranch = (await readHead(dirs.repository.gitDir)) === record.head_text;
    let told: string | null = null;
    if (isSameBranch && now === record.target) {
      if (!(await installIndex(moving, index, record)))
        told = 'a merge was cut short and is whole now; run git reset, so that git looks at the files anew';
    } else if (isSameBranch && now === record.head) {
      const kept = await putBack(dirs, moving, record, await filterFlags(dirs, record.filters));
      if (kept.length > 0) told = sentence(kept);
    } else told = 'a merge was cut short, and the branch was changed since; look at the files before you go on';
    await endMove(moving);
    return told;
  });
};
