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
import { isMissing } from '../files/error-code.ts';
import { changesBetween, type FileChange, noFile } from './commits.ts';
import { requireGit } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { foldersOf, shownName } from './names.ts';
import type { UpdatePlaces, UpdateRecord } from './update-record.ts';
import { atTop } from './users-files.ts';

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
export const undoUpdate = async (
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
