import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The size of all files below a folder (bytes). Follows no link; what cannot be read counts as
 * nothing.
 */
export const sizeOfFolder = async (folder: string): Promise<number> => {
  let bytes = 0;
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined; at = folders.pop())
    for (const entry of await readdir(at, { withFileTypes: true }).catch(() => [])) {
      const path = join(at, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else bytes += (await lstat(path).catch(() => null))?.size ?? 0;
    }
  return bytes;
};
