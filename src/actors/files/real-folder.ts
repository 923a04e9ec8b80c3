import { closeSync, fsyncSync, lstatSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { UnsafeFileError } from './regular-file.ts';

export const syncNames = (folder: string): void => {
  let file: number;
  try {
    file = openSync(folder, 'r');
  } catch {
    return;
  }
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};

/**
 * Makes a folder and its missing parents. What is synced in a folder whose own name is not on disk
 * can be lost.
 */
export const makeFolderDurably = (path: string, mode = 0o700): void => {
  const first = mkdirSync(path, { recursive: true, mode });
  if (first === undefined) return;
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    syncNames(dirname(folder));
    if (folder === resolve(first) || folder === dirname(folder)) return;
  }
};

/**
 * Each folder from `base` down must be a real one. @throws UnsafeFileError for a link, or something
 * that is no folder
 */
export const isRealFolder = (base: string, path: string): boolean => {
  let step = base;
  for (const name of relative(base, path).split(sep)) {
    step = join(step, name);
    const found = lstatSync(step, { throwIfNoEntry: false });
    if (found === undefined) return false;
    if (found.isSymbolicLink())
      throw new UnsafeFileError(
        `${step} is a symbolic link`,
        'put the folder itself there, or remove the link',
      );
    if (!found.isDirectory()) throw new UnsafeFileError(`${step} is not a folder`, 'remove it');
  }
  return true;
};

/** Makes a folder below `base` and its missing parents, durably. @throws as `isRealFolder` */
export const makeRealFolder = (base: string, path: string): void => {
  if (isRealFolder(base, path)) return;
  makeFolderDurably(path);
  isRealFolder(base, path);
};
