import { messageOf } from '../../machines/message-of.ts';
import { endOrphans } from '../process/orphans.ts';
import { commitOf } from './commits.ts';
import { filterFlags } from './filters.ts';
import { type GitAnswer, GitError, reasonIn } from './git.ts';
import { type GitDirs, readHead } from './git-dirs.ts';
import { beginMove, copyIndex, endMove, installIndex, type MoveRecord, readMove } from './move-record.ts';
import { type Checkout, type Stopped, stop } from './obstacles.ts';
import { putBack } from './put-back.ts';
import { withUserLocks } from './user-locks.ts';

interface Move {
  readonly head: string;
  readonly target: string;
  readonly signal?: AbortSignal | undefined;
}

const inTheWay = /^error: (?:Entry|Updating|Untracked working tree file) '(.+?)'/gm;

const filesIn = (stderr: string): readonly string[] => [...stderr.matchAll(inTheWay)].flatMap(([, name]) => name ?? []);

const sentence = (kept: readonly string[]): string =>
  `a merge was interrupted and undone, except for files that you changed since: ${kept.slice(0, 10).join(', ')}; check them`;

/** Asks git whether it would refuse. If so, the times in the index are refreshed, and it is asked once more. */
const refusalOf = async (
  git: (...args: readonly string[]) => Promise<GitAnswer>,
  { head, target, signal }: Move,
): Promise<Stopped | null> => {
  const tryIt = (): Promise<GitAnswer> => git('read-tree', '-m', '-u', '-n', head, target);
  let tried = await tryIt();
  if (!tried.ok) {
    await git('update-index', '-q', '--refresh');
    signal?.throwIfAborted();
    tried = await tryIt();
  }
  if (tried.ok) return null;
  const files = filesIn(tried.stderr);
  return files.length > 0
    ? stop('the project folder has changes in the same files that are not committed', files)
    : stop(reasonIn(tried.stderr) || 'git did not merge');
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
  const index_hash = await copyIndex(moving, index);
  const { top, kind } = dirs.repository;
  const where = { cwd: top, env: { GIT_WORK_TREE: top, GIT_INDEX_FILE: moving.index } };
  const git = (...args: readonly string[]): Promise<GitAnswer> => dirs.userGit([...flags, ...args], where);
  const refused = await refusalOf(git, move);
  if (refused !== null) {
    await endMove(moving);
    return refused;
  }
  const record: MoveRecord = { kind, head_text: dirs.head, head, target, filters: [...filters], index_hash };
  await beginMove(moving, record);

  const takeBack = async (): Promise<void> => {
    const kept = await putBack(dirs, moving, record, flags).catch((error: unknown) => {
      const why = 'the project folder has a part of the work; it is undone before the next merge';
      throw new GitError(`${why}: ${messageOf(error)}`);
    });
    await endMove(moving);
    if (kept.length > 0) throw new GitError(sentence(kept));
  };

  const failure = await git('read-tree', '-m', '-u', head, target)
    .then(async (changed) => {
      if (!changed.ok) return stop(reasonIn(changed.stderr) || 'git did not merge');
      signal?.throwIfAborted();
      const moved = await dirs.userGit(['update-ref', '-m', 'agent merge', 'HEAD', target, head]);
      return moved.ok ? null : stop(reasonIn(moved.stderr));
    })
    .catch((error: unknown) => new Error(messageOf(error), { cause: error }));
  if (failure !== null) {
    await takeBack();
    if (failure instanceof Error) throw failure.cause;
    return failure;
  }
  // The work is merged. An index that cannot be written now is written before the next merge.
  const isDone = await installIndex(moving, index, record).then(
    () => true,
    () => false,
  );
  if (isDone) await endMove(moving);
  return null;
};

/** Undoes or finishes a merge that a crash interrupted. @returns a message for the user, or null */
export const recoverMerge = async (
  dirs: GitDirs,
  { moving, index }: Pick<Checkout, 'moving' | 'index'>,
  record: MoveRecord,
): Promise<string | null> => {
  // A git process that survived the crash is ended first.
  await endOrphans('GIT_INDEX_FILE', moving.index);
  return withUserLocks(dirs.repository.gitDir, index, async () => {
    if ((await readMove(moving)) === null) return null;
    const now = await commitOf(dirs, 'HEAD');
    const isSameBranch = (await readHead(dirs.repository.gitDir)) === record.head_text;
    let told: string | null = null;
    if (isSameBranch && now === record.target) {
      if (!(await installIndex(moving, index, record)))
        told = 'a merge was interrupted and is complete now; run git reset, so that git reads the files again';
    } else if (isSameBranch && now === record.head) {
      const kept = await putBack(dirs, moving, record, await filterFlags(dirs, record.filters));
      if (kept.length > 0) told = sentence(kept);
    } else told = 'a merge was interrupted, and the branch was changed since; check git status';
    await endMove(moving);
    return told;
  });
};
