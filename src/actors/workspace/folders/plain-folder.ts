import { closeSync, mkdirSync, realpathSync } from 'node:fs';
import { hasCode } from '../../files/error-code.ts';
import { handlePath, openBelow, openFolder, openFolderIn, within } from './handles.ts';
import { isGone } from './walk.ts';

/** Makes the missing parts, each in the one before it, and opens the last. The caller closes it. */
const makeBelow = (folder: number, path: string): number => {
  let open = openFolderIn(folder, '.');
  for (const part of path.split('/').filter(Boolean)) {
    try {
      mkdirSync(within(open, part), { mode: 0o755 });
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) {
        closeSync(open);
        throw error;
      }
    }
    const above = open;
    try {
      open = openBelow(above, part);
    } finally {
      closeSync(above);
    }
  }
  return open;
};

/**
 * Finds a folder below another one, opening part by part, so that no link is followed. @returns its
 * path; null when a part is missing or is no folder
 */
export const plainFolder = (top: string, path: string, absent: 'make' | 'leave'): string | null => {
  const names = Buffer.from(path).toString('latin1');
  const root = openFolder(top);
  try {
    const folder = absent === 'make' ? makeBelow(root, names) : openBelow(root, names);
    try {
      return realpathSync(handlePath(folder));
    } finally {
      closeSync(folder);
    }
  } catch (error) {
    if (!isGone(error)) throw error;
    return null;
  } finally {
    closeSync(root);
  }
};
