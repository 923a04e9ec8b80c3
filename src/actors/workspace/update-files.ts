import { messageOf } from '../../machines/message-of.ts';
import { endOrphans } from '../process/orphans.ts';
import { commitOf } from './commits.ts';
import { filterFlags } from './filters.ts';
import { type GitAnswer, GitError, reasonIn } from './git.ts';
import { type GitDirs, readHead } from './git-dirs.ts';
import { type Checkout, type Stopped, stop } from './obstacles.ts';
import { undoUpdate } from './undo-update.ts';
import {
  beginUpdate,
  copyIndex,
  endUpdate,
  installIndex,
  readUpdate,
  type UpdateRecord,
} from './update-record.ts';
import { withUserLocks } from './user-locks.ts';

export interface Update {
  readonly head: string;
  readonly target: string;
  readonly signal?: AbortSignal | undefined;
}

const inTheWay = /^error: (?:Entry|Updating|Untracked working tree file) '(.+?)'/gm;

const filesIn = (stderr: string): readonly string[] =>
  [...stderr.matchAll(inTheWay)].flatMap(([, name]) => name ?? []);

const sentence = (kept: readonly string[]): string =>
  `a merge was interrupted and undone, except for files that you changed since: ${kept.slice(0, 10).join(', ')}; check them`;

/** Asks git whether it would refuse. If so, refreshes the times in the index and asks once more. */
const refusalOf = async (
  git: (...args: readonly string[]) => Promise<GitAnswer>,
  { head, target, signal }: Update,
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
    ? stop('the project folder has uncommitted changes in the same files', files)
    : stop(reasonIn(tried.stderr) || 'git did not merge');
};

/**
 * Updates the user's files and moves the branch, or does neither. The update is recorded on disk
 * first, so that the next process can undo an interrupted one. The branch decides: once it has
 * moved, the update is done.
 */
export const updateFiles = async (
  dirs: GitDirs,
  { places, index, filters }: Checkout,
  update: Update,
): Promise<Stopped | null> => {
  const { head, target, signal } = update;
  const flags = await filterFlags(dirs, filters);
  signal?.throwIfAborted();
  const index_hash = await copyIndex(places, index);
  const { top, kind } = dirs.repository;
  const where = { cwd: top, env: { GIT_WORK_TREE: top, GIT_INDEX_FILE: places.index } };
  const git = (...args: readonly string[]): Promise<GitAnswer> =>
    dirs.userGit([...flags, ...args], where);
  const refused = await refusalOf(git, update);
  if (refused !== null) {
    await endUpdate(places);
    return refused;
  }
  const record: UpdateRecord = {
    kind,
    head_text: dirs.head,
    head,
    target,
    filters: [...filters],
    index_hash,
  };
  await beginUpdate(places, record);

  const undo = async (): Promise<void> => {
    const kept = await undoUpdate(dirs, places, record, flags).catch((error: unknown) => {
      const why = 'the project folder has part of the work; the next merge undoes it first';
      throw new GitError(`${why}: ${messageOf(error)}`);
    });
    await endUpdate(places);
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
    await undo();
    if (failure instanceof Error) throw failure.cause;
    return failure;
  }
  // The work is merged. If the index cannot be written now, the next merge writes it.
  const isDone = await installIndex(places, index, record).then(
    () => true,
    () => false,
  );
  if (isDone) await endUpdate(places);
  return null;
};

/** Undoes or finishes an interrupted merge. @returns a message for the user, or null */
export const recoverMerge = async (
  dirs: GitDirs,
  { places, index }: Pick<Checkout, 'places' | 'index'>,
  record: UpdateRecord,
): Promise<string | null> => {
  // A git process that survived the crash is ended first.
  await endOrphans('GIT_INDEX_FILE', places.index);
  return withUserLocks(dirs.repository.gitDir, index, async () => {
    if ((await readUpdate(places)) === null) return null;
    const now = await commitOf(dirs, 'HEAD');
    const isSameBranch = (await readHead(dirs.repository.gitDir)) === record.head_text;
    let told: string | null = null;
    if (isSameBranch && now === record.target) {
      if (!(await installIndex(places, index, record)))
        told =
          'a merge was interrupted and is complete now; run git reset, so that git reads the files again';
    } else if (isSameBranch && now === record.head) {
      const kept = await undoUpdate(dirs, places, record, await filterFlags(dirs, record.filters));
      if (kept.length > 0) told = sentence(kept);
    } else told = 'a merge was interrupted, and the branch was changed since; check git status';
    await endUpdate(places);
    return told;
  });
};
