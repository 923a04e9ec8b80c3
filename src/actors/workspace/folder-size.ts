import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Of all files below a folder, in bytes; links are not followed, and what cannot be read counts as
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
