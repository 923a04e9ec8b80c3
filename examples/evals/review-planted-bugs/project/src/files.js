import { readFile } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';

const root = resolve(process.env.FILES ?? 'files');

/** The content of a file of the public folder. */
export const download = async (name) => {
  const path = resolve(root, name);
  if (!path.startsWith(root + sep)) throw new Error('not a public file');
  return readFile(join(path), 'utf8');
};
