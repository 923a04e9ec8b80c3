import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Makes the names in a folder durable; a folder that may not be read is left to the system. */
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

/** Makes a folder and what is missing above it, for good: what is synced in a folder that has no name yet can be lost. */
export const makeFolderDurably = (path: string, mode = 0o700): void => {
  const first = mkdirSync(path, { recursive: true, mode });
  if (first === undefined) return;
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    syncNames(dirname(folder));
    if (folder === resolve(first) || folder === dirname(folder)) return;
  }
};
