import { randomBytes } from 'node:crypto';
import { open, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Makes the name of a new or renamed file durable. */
export const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, 'r');
  await handle.sync().finally(() => handle.close());
};

/**
 * Replaces a file whole or not at all: temporary file in the same folder, synced, renamed over the old one, folder
 * synced. `beforeRename` runs when the new content is on disk and the old file still stands.
 */
export const writeFileAtomically = async (
  path: string,
  content: string,
  { mode = 0o600, beforeRename }: { mode?: number; beforeRename?: () => Promise<void> } = {},
): Promise<void> => {
  const folder = dirname(path);
  const temporary = join(folder, `.~${basename(path)}.${randomBytes(6).toString('hex')}`);
  try {
    const handle = await open(temporary, 'wx', mode);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await beforeRename?.();
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  }
  await syncFolder(folder);
};
