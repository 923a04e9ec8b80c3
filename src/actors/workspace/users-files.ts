import { lstat, readdir } from 'node:fs/promises';
import { isMissing } from '../files/error-code.ts';
import { type FileChange, noFile } from './commits.ts';
import type { GitDirs } from './git-dirs.ts';
import { foldersOf } from './names.ts';

/** The most entries that a merge checks in a folder that the work replaces. */
const folderEntriesAtMost = 100_000;

type Occupant = 'folder' | 'other' | null;

export const atTop = ({ repository }: GitDirs, path: string): Buffer =>
  Buffer.from(`${repository.top}/${path}`, 'latin1');

const kindAt = async (dirs: GitDirs, path: string): Promise<Occupant> => {
  try {
    return (await lstat(atTop(dirs, path))).isDirectory() ? 'folder' : 'other';
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
};

/**
 * The first entry of a folder that the work does not remove; the folder itself when it is too large
 * to check.
 */
const keptIn = async (
  dirs: GitDirs,
  top: string,
  removed: ReadonlySet<string>,
): Promise<string | null> => {
  const left = [top];
  let seen = 0;
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    if (removed.has(path)) continue;
    if ((await kindAt(dirs, path)) === 'other') return path;
    const names = await readdir(atTop(dirs, path), 'latin1').catch(() => null);
    seen += names?.length ?? 0;
    if (names === null || seen > folderEntriesAtMost) return path;
    for (const name of names) left.push(`${path}/${name}`);
  }
  return null;
};

/** The user's files, ignored ones included, that a merge would overwrite. */
export const findUsersFiles = async (
  dirs: GitDirs,
  changes: readonly FileChange[],
): Promise<readonly string[]> => {
  const removed = new Set(changes.filter(({ to }) => to === noFile).map(({ path }) => path));
  const emptied = foldersOf(removed);
  const found = new Set<string>();
  for (const folder of foldersOf(changes.map(({ path }) => path))) {
    const path = folder.slice(0, -1);
    if (!removed.has(path) && (await kindAt(dirs, path)) === 'other') found.add(path);
  }
  for (const { path, from } of changes) {
    if (from !== noFile || (await kindAt(dirs, path)) === null) continue;
    const kept = emptied.has(`${path}/`) ? await keptIn(dirs, path, removed) : path;
    if (kept !== null) found.add(kept);
  }
  return [...found];
};
