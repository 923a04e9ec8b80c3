import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, type Dirent, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { entriesIn, handleOf, look, openFolder, openFolderIn, within } from './handles.ts';
import { isGone } from './walk.ts';

/** Deeper folders are moved up first, so that few folders are open at once. */
const deepestFolder = 100;
const atOnce = 1_000;

const openOwned = (folder: number, name: string): number => {
  const handle = handleOf(folder, name);
  try {
    chmodSync(`/proc/self/fd/${handle}`, 0o700);
  } finally {
    closeSync(handle);
  }
  return openFolderIn(folder, name);
};

const createRemoval = (top: number) => {
  let removed = 0;
  const removeIn = async (folder: number, entry: Dirent, depth: number): Promise<void> => {
    removed += 1;
    if (removed % atOnce === 0) await new Promise(setImmediate);
    const path = within(folder, entry.name);
    if (!entry.isDirectory()) return unlinkSync(path);
    const inside = openOwned(folder, entry.name);
    try {
      if (depth === deepestFolder)
        return renameSync(path, within(top, randomBytes(12).toString('hex')));
      for (const each of entriesIn(inside)) await removeIn(inside, each, depth + 1);
    } finally {
      closeSync(inside);
    }
    rmdirSync(path);
  };
  return removeIn;
};

export const unlock = (path: string): void => {
  const parent = openFolder(dirname(path));
  try {
    closeSync(openOwned(parent, basename(path)));
  } finally {
    closeSync(parent);
  }
};

/** Makes the folders on the way to one below `top` accessible again; names are latin1. */
export const unlockWay = (top: string, path: string): void => {
  let open = openFolder(dirname(top));
  try {
    for (const name of [basename(top), ...path.split('/').filter(Boolean)]) {
      const isOpen = ((look(open, name)?.mode ?? 0) & 0o500) === 0o500;
      const next = isOpen ? openFolderIn(open, name) : openOwned(open, name);
      closeSync(open);
      open = next;
    }
  } finally {
    closeSync(open);
  }
};

/**
 * Removes a folder and all below it, whatever modes an agent set: by open handles, following no
 * link. It yields to other work of the thread.
 */
export const removeTree = async (path: string): Promise<void> => {
  const parent = openFolder(dirname(path));
  try {
    const top = openOwned(parent, basename(path));
    try {
      const removeIn = createRemoval(top);
      for (let left = entriesIn(top); left.length > 0; left = entriesIn(top))
        for (const entry of left) await removeIn(top, entry, 1);
    } finally {
      closeSync(top);
    }
    rmdirSync(within(parent, basename(path)));
  } catch (error) {
    if (!isGone(error)) throw error;
  } finally {
    closeSync(parent);
  }
};
