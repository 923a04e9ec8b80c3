import { lstatSync } from 'node:fs';

/**
 * Another text for each folder that was ever made at this path, such as that of a new clone; null
 * without one.
 */
export const folderIdentity = (path: string): string | null => {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? null : `${found.ino}/${found.birthtimeNs}`;
};
