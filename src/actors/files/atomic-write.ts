import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsync,
  openSync,
  readdirSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';

/**
 * Only fsync waits for the disk; the other calls touch the kernel's memory and would cost more as
 * promises.
 */
const syncFile = promisify(fsync);

const synced = async (
  path: string,
  flags: string,
  mode: number,
  write: (file: number) => void | Promise<void>,
): Promise<void> => {
  const file = openSync(path, flags, mode);
  try {
    await write(file);
    await syncFile(file);
  } finally {
    closeSync(file);
  }
};

type FileContent = string | Iterable<string> | AsyncIterable<string>;

/** Pieces are made and written in turns of the event loop of their own. */
const writeAll = async (file: number, content: FileContent): Promise<void> => {
  if (typeof content === 'string') return writeFileSync(file, content);
  for await (const piece of content) {
    writeFileSync(file, piece);
    await nextTurn();
  }
};

const syncFolder = (folder: string): Promise<void> => synced(folder, 'r', 0, () => {});

const removeQuietly = (path: string): void => {
  try {
    unlinkSync(path);
  } catch {
    // The file was never created; the first error counts.
  }
};

/** Removes what killed writers left. Only for the sole writer of the folder. */
export const removeLeftovers = (folder: string): void => {
  for (const name of readdirSync(folder))
    if (/^\.~.+\.[0-9a-f]{12}$/.test(name)) removeQuietly(join(folder, name));
};

/**
 * Replaces a file atomically: temporary file in the same folder, fsync, rename, fsync of the
 * folder. `beforeRename` runs when the new content is on disk, in `temporary`, and the old file
 * still has its name.
 */
export const writeFileAtomically = async (
  path: string,
  content: FileContent,
  {
    mode = 0o600,
    beforeRename,
  }: { mode?: number; beforeRename?: (temporary: string) => void } = {},
): Promise<void> => {
  const folder = dirname(path);
  const temporary = join(folder, `.~${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    await synced(temporary, 'wx', mode, (file) => writeAll(file, content));
    beforeRename?.(temporary);
    renameSync(temporary, path);
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  }
  await syncFolder(folder);
};
