import { join } from 'node:path';
import { GitError } from './git.ts';
import { plainEntries, plainText, requirePlainEntries } from './plain.ts';

/**
 * Returns the repository's own object store. @throws GitError when it borrows objects from another
 * repository (they are not the project's to show), or has a link or a pipe where git would follow
 * it
 */
export const objectStore = async (commonDir: string): Promise<string> => {
  const store = join(commonDir, 'objects');
  for (const name of ['', 'pack', 'info']) await requirePlainEntries(join(store, name));
  const file = join(store, 'info', 'alternates');
  const lines = (await plainText(file))?.split('\n') ?? [];
  const other = lines.find((line) => line !== '' && !line.startsWith('#'));
  if (other === undefined) return store;
  throw new GitError(
    `this repository borrows objects from ${other}, which agents could read; run git repack -a -d && rm ${file}`,
  );
};

/** @throws GitError when a link, a pipe or the like is among the objects that are no packs */
export const requirePlainObjects = async (commonDir: string): Promise<void> => {
  const store = join(commonDir, 'objects');
  for await (const { name } of plainEntries(store))
    if (/^[0-9a-f]{2}$/.test(name)) await requirePlainEntries(join(store, name));
};
