import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Git's mode and hash of each file and link, by its path (latin1, since names need not be UTF-8).
 */
export type Tree = ReadonlyMap<string, string>;

const blobOf = (bytes: Buffer): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');

const entryOf = (path: Buffer): string | null => {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return `120000 ${blobOf(readlinkSync(path, { encoding: 'buffer' }))}`;
  if (!stat.isFile()) return null;
  return `${stat.mode & 0o100 ? '100755' : '100644'} ${blobOf(readFileSync(path))}`;
};

/**
 * What a folder holds, without what lies below a path of `without`. Pipes and the like are not in
 * it.
 */
export const treeOfFolder = (
  folder: string,
  without: (path: string) => boolean = () => false,
): Tree => {
  const tree = new Map<string, string>();
  const walk = (path: string): void => {
    const here = Buffer.from(
      path === '' ? folder : `${Buffer.from(folder).toString('latin1')}/${path}`,
      'latin1',
    );
    for (const name of readdirSync(here, { encoding: 'buffer' })) {
      const below = `${path === '' ? '' : `${path}/`}${name.toString('latin1')}`;
      const full = Buffer.concat([here, Buffer.from('/'), name]);
      if (without(below)) continue;
      if (lstatSync(full).isDirectory()) walk(below);
      else {
        const entry = entryOf(full);
        if (entry !== null) tree.set(below, entry);
      }
    }
  };
  walk('');
  return tree;
};

/** What a commit holds; submodules are left out. */
export const treeOfCommit = (gitDir: string, commit: string): Tree => {
  const args = ['--git-dir', gitDir, 'ls-tree', '-r', '-z', '--full-tree', commit];
  const env = {
    PATH: process.env['PATH'] ?? '',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
  };
  const listed = execFileSync('git', args, { env, encoding: 'latin1', maxBuffer: 1e8 });
  const entries = listed.split('\0').flatMap((line) => {
    const [, mode, type, hash, path] = /^(\d+) (\w+) (\w+)\t([\s\S]*)$/.exec(line) ?? [];
    return path === undefined || type !== 'blob' ? [] : [[path, `${mode} ${hash}`] as const];
  });
  return new Map(entries);
};
