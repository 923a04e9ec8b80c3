import type { Stats } from 'node:fs';
import {
  copyFile,
  lstat,
  mkdir,
  readFile,
  readlink,
  rm,
  rmdir,
  symlink,
  unlink,
} from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../machines/message-of.ts';
import { isMissing } from '../../files/error-code.ts';
import { endOrphans } from '../../process/orphans.ts';
import { foldersOf, shownName } from '../folders/names.ts';
import { changesBetween, commitOf, type FileChange, noFile } from '../git/commits.ts';
import { type GitAnswer, GitError, reasonIn, requireGit } from '../git/git.ts';
import { type GitDirs, readHead } from '../git/git-dirs.ts';
import { filterFlags } from './filters.ts';
import { atTop, type Checkout, type Stopped, stop } from './obstacles.ts';
import {
  beginUpdate,
  copyIndex,
  endUpdate,
  installIndex,
  readUpdate,
  type UpdatePlaces,
  type UpdateRecord,
} from './update-record.ts';
import { withUserLocks } from './user-locks.ts';

const pathBelow = (folder: string, path: string): Buffer =>
  Buffer.from(`${folder}/${path}`, 'latin1');

const lstatOrNull = async (path: Buffer): Promise<Stats | null> =>
  lstat(path).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw error;
  });

const savedBytes = async (path: Buffer, stat: Stats): Promise<Buffer | null> => {
  if (stat.isSymbolicLink()) return readlink(path, 'buffer');
  return stat.isFile() ? readFile(path) : null;
};

type Likeness = 'same' | 'beginning' | 'other';

/** Compares two paths. `beginning` is what git leaves when it is killed or the disk is full. */
const compare = async (path: Buffer, other: Buffer): Promise<Likeness> => {
  const [stat, otherStat] = [await lstatOrNull(path), await lstatOrNull(other)];
  if (stat === null || otherStat === null) return stat === otherStat ? 'same' : 'other';
  if (stat.isSymbolicLink() !== otherStat.isSymbolicLink() || stat.size > otherStat.size)
    return 'other';
  const [bytes, otherBytes] = [await savedBytes(path, stat), await savedBytes(other, otherStat)];
  if (bytes === null || otherBytes === null || !otherBytes.subarray(0, bytes.length).equals(bytes))
    return 'other';
  if (bytes.length < otherBytes.length) return 'beginning';
  return ((stat.mode ^ otherStat.mode) & 0o100) === 0 ? 'same' : 'other';
};

/**
 * Writes the changed files of a commit into a folder of ours, as git would write them for the user.
 */
const writeOut = async (
  { userGit }: GitDirs,
  folder: string,
  commit: string,
  paths: readonly string[],
  flags: readonly string[],
): Promise<void> => {
  // An earlier try may have left them.
  for (const left of ['', '.index', '.index.lock'])
    await rm(`${folder}${left}`, { recursive: true, force: true });
  await mkdir(folder, { mode: 0o700 });
  const where = { cwd: folder, env: { GIT_WORK_TREE: folder, GIT_INDEX_FILE: `${folder}.index` } };
  const input = Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1');
  const what = 'the files as they were cannot be read';
  await requireGit(what, userGit([...flags, 'read-tree', commit], where));
  await requireGit(
    what,
    userGit([...flags, 'checkout-index', '-q', '-z', '--stdin'], { ...where, input }),
  );
};

/** A folder that cannot be removed, such as a mount point, stays empty. */
const removeEmptyFolders = async (dirs: GitDirs, paths: readonly string[]): Promise<void> => {
  const deepestFirst = [...foldersOf(paths)].sort((one, other) => other.length - one.length);
  for (const folder of deepestFirst) await rmdir(atTop(dirs, folder.slice(0, -1))).catch(() => {});
};

/** Makes the folders of a path; false when something else is in the place of one. */
const makeWay = async (dirs: GitDirs, path: string): Promise<boolean> => {
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    const folder = atTop(dirs, path.slice(0, at));
    const stat = await lstatOrNull(folder);
    if (stat === null) await mkdir(folder);
    else if (!stat.isDirectory()) return false;
  }
  return true;
};

const restore = async (dirs: GitDirs, path: string, from: Buffer): Promise<void> => {
  const to = atTop(dirs, path);
  const stat = await lstat(from);
  if (stat.isSymbolicLink()) await symlink(await readlink(from, 'buffer'), to);
  else await copyFile(from, to);
};

/**
 * Undoes an interrupted update. A file with neither its old nor its new content is the user's own:
 * it stays. @returns such files, for people
 */
const undoUpdate = async (
  dirs: GitDirs,
  places: UpdatePlaces,
  { head, target }: UpdateRecord,
  flags: readonly string[],
): Promise<readonly string[]> => {
  const [before, after] = [join(places.folder, 'before'), join(places.folder, 'after')];
  const changes = await changesBetween(dirs, head, target);
  const pathsWith = (mode: (change: FileChange) => string): readonly string[] =>
    changes.filter((change) => mode(change) !== noFile).map(({ path }) => path);
  const [paths, newPaths] = [pathsWith(({ from }) => from), pathsWith(({ to }) => to)];
  await writeOut(dirs, before, head, paths, flags);
  await writeOut(dirs, after, target, newPaths, flags);

  const kept: string[] = [];
  const lost: string[] = [];
  const removed: string[] = [];
  for (const { path } of changes) {
    const here = atTop(dirs, path);
    if ((await compare(here, pathBelow(before, path))) === 'same') continue;
    const stat = await lstatOrNull(here);
    if (stat !== null && (await compare(here, pathBelow(after, path))) === 'other') {
      kept.push(shownName(path));
      continue;
    }
    if (stat !== null) await unlink(here);
    removed.push(path);
    if ((await lstatOrNull(pathBelow(before, path))) !== null) lost.push(path);
  }
  await removeEmptyFolders(dirs, removed);
  for (const path of lost)
    if (await makeWay(dirs, path)) await restore(dirs, path, pathBelow(before, path));
    else kept.push(shownName(path));
  return kept;
};

export interface Update {
  readonly head: string;
  readonly target: string;
  /** Nothing is changed: only what would be in the way is looked for. */
  readonly isTrial?: true;
  readonly signal?: AbortSignal;
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
    ? stop(
        'the project folder has uncommitted changes in the same files: commit or stash them first',
        files,
      )
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
  const { head, target, isTrial, signal } = update;
  const flags = await filterFlags(dirs, filters);
  signal?.throwIfAborted();
  const index_hash = await copyIndex(places, index);
  const { top, kind } = dirs.repository;
  const where = { cwd: top, env: { GIT_WORK_TREE: top, GIT_INDEX_FILE: places.index } };
  const git = (...args: readonly string[]): Promise<GitAnswer> =>
    dirs.userGit([...flags, ...args], where);
  const refused = await refusalOf(git, update);
  if (refused !== null || isTrial) {
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
