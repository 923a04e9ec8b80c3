import { existsSync } from 'node:fs';
import { lstat, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type FileChange, findObjects } from './commits.ts';
import { requiredLine, requireGit } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { attributesMs } from './kept-forms.ts';
import { isPointer, pointerBytes } from './large-files.ts';
import { foldersOf, shownName, textOf } from './names.ts';
import type { Checkout, Stopped } from './obstacles.ts';
import { isPlain } from './plain.ts';
import { type FilterName, filterNames } from './port.ts';

/** These command lines, whatever a configuration says. Git replaces `%f`. */
const commands: Readonly<Record<FilterName, { readonly clean: string; readonly smudge: string }>> =
  {
    lfs: { clean: 'git-lfs clean -- %f', smudge: 'git-lfs smudge -- %f' },
  };

const bwrap = '/usr/bin/bwrap';
const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** With bubblewrap: no network, and only its own store is writable. */
const confined = (command: string, writable: readonly string[]): string => {
  if (!existsSync(bwrap)) return command;
  const binds = writable.flatMap((path) => ['--bind', shellQuoted(path), shellQuoted(path)]);
  return [
    bwrap,
    '--unshare-all',
    '--die-with-parent',
    '--ro-bind / / --dev /dev --proc /proc',
    ...binds,
    '--',
    command,
  ].join(' ');
};

export const filterFlags = async (
  dirs: GitDirs,
  allowed: readonly string[],
): Promise<readonly string[]> => {
  const names = filterNames.filter((name) => allowed.includes(name));
  if (names.length === 0) return [];
  const store = join(dirs.repository.commonDir, 'lfs');
  if (!(await isPlain(store, 'folder'))) await mkdir(store, { mode: 0o700 });
  const link = join(dirs.userGitDir, 'lfs');
  if (!(await lstat(link).catch(() => null))) await symlink(store, link);
  return names.flatMap((name) =>
    [
      `filter.${name}.clean=${confined(commands[name].clean, [store, dirs.userGitDir])}`,
      `filter.${name}.smudge=${confined(commands[name].smudge, [store, dirs.userGitDir])}`,
      `filter.${name}.required=true`,
    ].flatMap((setting) => ['-c', setting]),
  );
};

const haveAttributes = async (
  dirs: GitDirs,
  target: string,
  paths: readonly string[],
): Promise<boolean> => {
  if (dirs.hasAttributes) return true;
  const above = foldersOf(paths);
  if ([...above].some((folder) => folder.includes('\n'))) return true;
  const found = await findObjects(
    dirs,
    ['', ...above].map((folder) => `${target}:${folder}.gitattributes`),
  );
  return found.some((object) => object !== null);
};

/**
 * Refuses work that was saved before git-lfs was allowed: git would keep its large files as they
 * are for ever.
 */
const noPointers = async (
  { git }: GitDirs,
  written: readonly FileChange[],
  large: readonly string[],
): Promise<Stopped | null> => {
  const oids = new Map(written.map(({ path, oid }) => [path, oid]));
  const files: string[] = [];
  for (const path of large) {
    const oid = oids.get(path) ?? '';
    const size = Number(await requiredLine('a file cannot be read', git(['cat-file', '-s', oid])));
    if (
      size < pointerBytes &&
      isPointer(await requireGit('a file cannot be read', git(['cat-file', 'blob', oid])))
    )
      continue;
    files.push(shownName(path));
  }
  if (files.length === 0) return null;
  const why =
    'files of git-lfs were saved as they are, before workspace.filters had "lfs"; run the task again, or merge with git yourself';
  return { why, files };
};

export const filterRefusal = async (
  dirs: GitDirs,
  { filters }: Checkout,
  target: string,
  changes: readonly FileChange[],
): Promise<Stopped | null> => {
  const written = changes.filter(({ to }) => to.startsWith('100'));
  const lfs = written.filter(({ path }) => /(^|\/)\.lfsconfig$/i.test(textOf(path)));
  if (lfs.length > 0 && filters.length > 0)
    return {
      why: 'the work changes .lfsconfig, which the filter "lfs" obeys; if that is intended, merge it with git yourself',
      files: lfs.map(({ path }) => shownName(path)),
    };
  const paths = written.map(({ path }) => path);
  if (written.length === 0 || !(await haveAttributes(dirs, target, paths))) return null;
  const env = { GIT_INDEX_FILE: join(dirs.temporary, 'index-of-target') };
  await requireGit(
    'the attributes of files cannot be read',
    dirs.userGit(['read-tree', target], { env }),
  );
  const input = Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1');
  const args = ['check-attr', '-z', '--cached', '--stdin', 'filter'];
  const words = (
    await requireGit(
      'the attributes of files cannot be read',
      dirs.userGit(args, { env, input, limitMs: attributesMs }),
    )
  )
    .toString('latin1')
    .split('\0');
  const large: string[] = [];
  for (let at = 0; at + 2 < words.length; at += 3) {
    const [path = '', , name = ''] = words.slice(at, at + 3);
    if (name === 'lfs') large.push(path);
    if (['unspecified', 'unset', 'set'].includes(name) || filters.includes(name)) continue;
    const shown = JSON.stringify(textOf(name));
    return {
      why: `${shownName(path)} needs the filter ${shown}, which is not allowed here; allow it with workspace.filters: [${shown}], or merge with git yourself`,
      files: [shownName(path)],
    };
  }
  return noPointers(dirs, written, large);
};
