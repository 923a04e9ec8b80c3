import { constants, type Dirent } from 'node:fs';
import { lstat, open, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, isMissing } from '../../files/error-code.ts';
import { GitError } from './git.ts';

type PlainKind = 'file' | 'folder';

const plainKindOf = async (path: string): Promise<PlainKind | 'other' | null> => {
  try {
    const stat = await lstat(path);
    if (stat.isFile()) return 'file';
    return stat.isDirectory() ? 'folder' : 'other';
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
};

/** True also for a link that leads nowhere. */
export const isPresent = (path: string | Buffer): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

const notPlain = (path: string): GitError =>
  new GitError(`${path} is not a plain file or folder; nothing was read or written there`);

/** @throws GitError when something of another kind is there, such as a link or a pipe */
export const isPlain = async (path: string, kind: PlainKind): Promise<boolean> => {
  const found = await plainKindOf(path);
  if (found !== null && found !== kind) throw notPlain(path);
  return found === kind;
};

/** @throws GitError when a part of the path is there and is neither a folder nor a plain file */
export const requirePlainWay = async (folder: string, path: string): Promise<void> => {
  let at = folder;
  for (const part of path.split('/')) {
    at = join(at, part);
    const found = await plainKindOf(at);
    if (found === 'other') throw notPlain(at);
    if (found === null) return;
  }
};

const mostEntries = 100_000;

/**
 * What is directly in a folder; nothing when there is none. @throws GitError when a link, a pipe or
 * the like is there, or too much
 */
export async function* plainEntries(
  folder: string,
  atMost: number = mostEntries,
): AsyncGenerator<Dirent> {
  if (!(await isPlain(folder, 'folder'))) return;
  let count = 0;
  for await (const entry of await opendir(folder, { bufferSize: 500 })) {
    if (!entry.isFile() && !entry.isDirectory()) throw notPlain(join(folder, entry.name));
    count += 1;
    if (count > atMost)
      throw new GitError(`${folder} has more than ${atMost} entries; run git gc there`);
    yield entry;
  }
}

/** @throws GitError when a link, a pipe or the like is directly in the folder, or too much */
export const requirePlainEntries = async (folder: string): Promise<void> => {
  for await (const _ of plainEntries(folder));
};

const textAtMost = 1024 * 1024;

/** A pipe does not stop it, nor does a link lead it, whoever puts one there at the same moment. */
const openPlain = async (path: string) => {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isMissing(error)) return null;
    if (hasCode(error, 'ELOOP', 'ENXIO')) throw notPlain(path);
    throw error;
  }
};

/**
 * Reads a small plain file; null when there is none. @throws GitError when it is something else, or
 * large
 */
export const plainText = async (
  path: string,
  bytesAtMost: number = textAtMost,
): Promise<string | null> => {
  const file = await openPlain(path);
  if (file === null) return null;
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw notPlain(path);
    if (stat.size > bytesAtMost) throw new GitError(`${path} is too large`);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(stat.size + 1) });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
};

/**
 * Returns the repository's own object store. @throws GitError when it borrows objects from another
 * repository (they are not the project's to show), or has a link or a pipe where git would follow
 * it
 */
export const objectStore = async (commonDir: string): Promise<string> => {
  const store = join(commonDir, 'objects');
  for (const name of ['', 'pack', 'info']) await requirePlainEntries(join(store, name));
  const file = join(store, 'info', 'alternates');
  const lines = (await plainText(file))?.split('\n') ?? [];
  const other = lines.find((line) => line !== '' && !line.startsWith('#'));
  if (other === undefined) return store;
  throw new GitError(
    `this repository borrows objects from ${other}, which agents could read; run git repack -a -d && rm ${file}`,
  );
};

/** @throws GitError when a link, a pipe or the like is among the objects that are no packs */
export const requirePlainObjects = async (commonDir: string): Promise<void> => {
  const store = join(commonDir, 'objects');
  for await (const { name } of plainEntries(store))
    if (/^[0-9a-f]{2}$/.test(name)) await requirePlainEntries(join(store, name));
};
