import { lstatSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { makeFolderDurably } from './durable-folder.ts';
import { UnsafeFileError } from './regular-file.ts';

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
