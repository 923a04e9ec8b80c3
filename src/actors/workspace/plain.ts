import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GitError } from './git.ts';

export type Kind = 'file' | 'folder';

const kindOf = async (path: string): Promise<Kind | 'other' | null> => {
  try {
    const stat = await lstat(path);
    if (stat.isFile()) return 'file';
    return stat.isDirectory() ? 'folder' : 'other';
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null;
    throw error;
  }
};

/** Whether anything is there, also a link that leads nowhere. */
export const isPresent = (path: string | Buffer): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

const notPlain = (path: string): GitError =>
  new GitError(`${path} is not a plain file or folder; nothing was read or written there`);

/** Whether something of this kind is there. @throws GitError when something else is, such as a link or a pipe */
export const isPlain = async (path: string, kind: Kind): Promise<boolean> => {
  const found = await kindOf(path);
  if (found !== null && found !== kind) throw notPlain(path);
  return found === kind;
};

/** Each part of a path below a folder. @throws GitError when one of them is there and is neither folder nor plain file */
export const requirePlainWay = async (folder: string, path: string): Promise<void> => {
  let at = folder;
  for (const part of path.split('/')) {
    at = join(at, part);
    const found = await kindOf(at);
    if (found === 'other') throw notPlain(at);
    if (found === null) return;
  }
};

/** Everything right in a folder. @throws GitError when a link, a pipe or the like is among it */
export const requirePlainEntries = async (folder: string): Promise<void> => {
  if (!(await isPlain(folder, 'folder'))) return;
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (!entry.isFile() && !entry.isDirectory()) throw notPlain(join(folder, entry.name));
};

const textAtMost = 1024 * 1024;

/** A small plain file, or null when there is none. @throws GitError when it is something else, or large */
export const plainText = async (path: string): Promise<string | null> => {
  if (!(await isPlain(path, 'file'))) return null;
  if ((await lstat(path)).size > textAtMost) throw new GitError(`${path} is too large`);
  return readFile(path, 'utf8');
};
