import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { lstat, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { foldersOf, shownName, textOf } from '../folders/names.ts';
import { type FileChange, findObjects } from '../git/commits.ts';
import { type Git, requiredLine, requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import type { IndexEntry } from '../git/index-file.ts';
import { isPlain } from '../git/plain.ts';
import { type FilterName, filterNames } from '../port.ts';
import type { Checkout, Stopped } from './obstacles.ts';

/** A user can write patterns that take git for ever. */
const attributesMs = 10_000;
const lineEnd = Buffer.from('\r\n');

export const hasLineEnds = (content: Buffer): boolean => content.includes(lineEnd);

export const withoutReturns = (content: Buffer): Buffer =>
  Buffer.from(content.toString('latin1').replaceAll('\r\n', '\n'), 'latin1');

/** Like git: a file with a NUL, or with a lone CR, is not text. */
const looksLikeText = (content: Buffer): boolean =>
  !content.includes(0) && !/\r(?!\n)/.test(content.toString('latin1'));

interface FormRules {
  readonly git: Git;
  readonly index: string;
  readonly hasAutoCrlf: boolean;
  readonly usesLargeFiles: boolean;
  readonly signal: AbortSignal;
}

type Attributes = { text?: string; eol?: string; filter?: string };

/** How git stores a file: byte for byte, with LF, or as a pointer of git-lfs. */
export type Form = 'bytes' | 'lf' | 'pointer';

const gitAttributesOf = async (paths: readonly string[], { git, index, signal }: FormRules) => {
  const input = Buffer.from(paths.map((path) => `${path}\0`).join(''), 'latin1');
  const args = ['check-attr', '-z', '--stdin', '--cached', 'text', 'eol', 'filter'];
  const call = git(args, { env: { GIT_INDEX_FILE: index }, input, signal, limitMs: attributesMs });
  const words = (await requireGit('the attributes of files cannot be read', call))
    .toString('latin1')
    .split('\0');
  const found = new Map<string, Attributes>();
  for (let at = 0; at + 2 < words.length; at += 3) {
    const [path = '', name = '', value = ''] = words.slice(at, at + 3);
    found.set(path, { ...found.get(path), [name]: value });
  }
  return found;
};

/**
 * The form of each file that is not stored byte for byte. `content` reads a file again; null when
 * it is gone.
 */
export const formsOf = async (
  files: ReadonlyMap<string, IndexEntry | undefined>,
  rules: FormRules,
  content: (path: string) => Buffer | null,
): Promise<ReadonlyMap<string, Form>> => {
  const { git, hasAutoCrlf, usesLargeFiles, signal } = rules;
  const attributes = await gitAttributesOf([...files.keys()], rules);
  const forms = new Map<string, Form>();
  for (const [path, before] of files) {
    const { text = 'unspecified', eol = 'unspecified', filter } = attributes.get(path) ?? {};
    if (usesLargeFiles && filter === 'lfs') {
      forms.set(path, 'pointer');
      continue;
    }
    if (text === 'unset') continue;
    const isText = text === 'set' || (text !== 'auto' && (eol === 'lf' || eol === 'crlf'));
    const maybe = text === 'auto' || (text === 'unspecified' && hasAutoCrlf);
    if (isText) forms.set(path, 'lf');
    if (isText || !maybe) continue;
    const now = content(path);
    if (now === null || !hasLineEnds(now) || !looksLikeText(now)) continue;
    const earlier =
      before === undefined ? null : await git(['cat-file', 'blob', before.oid], { signal });
    // Like git, keep CR LF if the committed version has it.
    if (earlier === null || !hasLineEnds(earlier.stdout)) forms.set(path, 'lf');
  }
  return forms;
};

/**
 * Git stores a pointer instead of a file of git-lfs:
 * https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
 */
const pointerVersion = 'version https://git-lfs.github.com/spec/v1';
/** A pointer is shorter than this. */
const pointerBytes = 1_024;

const isPointer = (content: Uint8Array): boolean =>
  content.length === 0 ||
  (content.length < pointerBytes &&
    Buffer.from(content).toString('latin1').startsWith(`${pointerVersion}\n`));

export const asPointer = (store: string, content: Buffer): Buffer => {
  if (isPointer(content)) return content;
  const oid = createHash('sha256').update(content).digest('hex');
  const folder = join(store, 'objects', oid.slice(0, 2), oid.slice(2, 4));
  const file = join(folder, oid);
  if (statSync(file, { throwIfNoEntry: false })?.size !== content.length) {
    mkdirSync(folder, { recursive: true });
    const temporary = join(folder, `tmp-${randomBytes(8).toString('hex')}`);
    writeFileSync(temporary, content, { flag: 'wx', mode: 0o644 });
    renameSync(temporary, file);
  }
  return Buffer.from(`${pointerVersion}\noid sha256:${oid}\nsize ${content.length}\n`);
};

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
