import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { GitError } from './git.ts';
import { isPlain, plainText, requirePlainEntries } from './plain.ts';

const known = /^(?:[0-9a-f]{2}|pack|info|tmp_obj.*|incoming-.*)$/;
/** Git follows five. */
const atMost = 10;

/** @throws GitError where a repository borrows from a folder with other things, which agents could read then */
const requireStore = async (store: string): Promise<void> => {
  const other = (await readdir(store)).find((name) => !known.test(name));
  if (other !== undefined)
    throw new GitError(`objects/info/alternates names ${store}, which is no store of objects: it has ${other}`);
};

/**
 * The stores of objects that a repository reads: its own, and those that it borrows from.
 * @throws GitError when one is none, or has a link or a pipe where git would follow it
 */
export const objectStores = async (commonDir: string): Promise<readonly string[]> => {
  const own = join(commonDir, 'objects');
  const stores = [own];
  for (const store of stores) {
    if (store !== own) await requireStore(store);
    for (const name of ['', 'pack', 'info']) await requirePlainEntries(join(store, name));
    const lines = (await plainText(join(store, 'info', 'alternates')))?.split('\n') ?? [];
    for (const line of lines) {
      const path = resolve(store, line);
      if (line === '' || line.startsWith('#') || stores.includes(path) || !(await isPlain(path, 'folder'))) continue;
      if (stores.length === atMost) throw new GitError('this repository borrows objects from too many others');
      stores.push(path);
    }
  }
  return stores;
};
