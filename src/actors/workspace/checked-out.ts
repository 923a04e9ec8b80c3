import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { plainText } from './plain.ts';
import type { Repository } from './repository.ts';

/** Files that name a branch which a working tree has, or returns to after a rebase. */
const heads = ['HEAD', 'rebase-merge/head-name', 'rebase-apply/head-name', 'BISECT_START'];

/** The branches that a working tree of the repository has checked out, as `refs/heads/…`. */
export const findCheckedOut = async ({ commonDir }: Repository): Promise<ReadonlySet<string>> => {
  const linked = await readdir(join(commonDir, 'worktrees')).catch(() => []);
  const dirs = [commonDir, ...linked.map((name) => join(commonDir, 'worktrees', name))];
  const texts = await Promise.all(
    dirs.flatMap((dir) => heads.map((name) => plainText(join(dir, name)).catch(() => null))),
  );
  return new Set(
    texts.flatMap((text) => {
      const name = text?.trim().replace(/^ref: /, '') ?? '';
      return name === '' ? [] : [name.startsWith('refs/heads/') ? name : `refs/heads/${name}`];
    }),
  );
};
