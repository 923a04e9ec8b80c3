import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const root = resolve(process.env.FILES ?? 'files');

/** The content of a file of the public folder. */
export const download = async (name) => {
  const path = join(root, name);
  if (!path.startsWith(root)) throw new Error('not a public file');
  return readFile(path, 'utf8');
};
