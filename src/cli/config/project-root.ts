import { lstatSync, type Stats, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readRegular } from '../../actors/files/regular-file.ts';

const uid = process.getuid?.();
/** Windows has no user ids: everything is the user's own. */
export const isOwn = (found: Stats): boolean => uid === undefined || found.uid === uid;

/** A group with the user's number is the user's own on most Linux systems. */
const othersMayWrite = ({ mode, gid }: Stats): boolean =>
  uid !== undefined && ((mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid));

/** Null also for a path that cannot be one, such as a very long one. */
const statOrNull = (path: string): Stats | null => {
  try {
    return statSync(path);
  } catch {
    return null;
  }
};

export const isFolder = (path: string): boolean => statOrNull(path)?.isDirectory() === true;
const isFile = (path: string): boolean => statOrNull(path)?.isFile() === true;

const isGitDir = (path: string): boolean =>
  isFile(join(path, 'HEAD')) &&
  (isFile(join(path, 'commondir')) ||
    (isFolder(join(path, 'objects')) && isFolder(join(path, 'refs'))));

const pointerBytesAtMost = 4_096;

/** The folder `.git`, or the target of the file `.git`; null when it is no valid git directory. */
export const gitDirOf = (folder: string): string | null => {
  const path = join(folder, '.git');
  try {
    if (isFolder(path)) return isGitDir(path) ? path : null;
    const [, target] = /^gitdir: (.+)\n?$/.exec(readRegular(path, pointerBytesAtMost)) ?? [];
    const found = target === undefined ? null : resolve(folder, target);
    return found !== null && isGitDir(found) ? found : null;
  } catch {
    return null;
  }
};

const isOwnEntry = (path: string): boolean => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found !== undefined && isOwn(found);
};

const isProjectRoot = (folder: string): boolean => {
  const beads = join(folder, '.beads');
  if (isOwnEntry(beads) && lstatSync(beads).isDirectory()) return true;
  return isOwnEntry(join(folder, '.git')) && gitDirOf(folder) !== null;
};

/**
 * The nearest folder upward that the user owns and that is a valid repository or contains
 * `.beads/`. Null when there is none below the first folder that others may write.
 */
export const nearestRoot = (from: string): string | null => {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = statSync(folder);
    if (othersMayWrite(found)) return null;
    if (isOwn(found) && isProjectRoot(folder)) return folder;
    if (folder === dirname(folder)) return null;
  }
};
