import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

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
