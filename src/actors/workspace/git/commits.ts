import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type GitAnswer,
  type GitCall,
  GitError,
  reasonIn,
  requiredLine,
  requireGit,
} from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { requirePlainWay } from './plain.ts';
import { type Signing, unsigned } from './signing.ts';

const looksLike = /^git version (\d+)\.(\d+)/;
/** The first version with `merge-tree --write-tree`. */
const mergesSince = [2, 38] as const;

const merging = new Map<string, boolean>();

const canMerge = async ({ git, program }: GitDirs): Promise<boolean> => {
  const before = merging.get(program);
  if (before !== undefined) return before;
  const [, major = '0', minor = '0'] =
    looksLike.exec((await git(['--version'])).stdout.toString()) ?? [];
  const can =
    Number(major) > mergesSince[0] ||
    (Number(major) === mergesSince[0] && Number(minor) >= mergesSince[1]);
  merging.set(program, can);
  return can;
};

const foundObject = /^([0-9a-f]+) \w+ \d+$/;

/**
 * Resolves names to objects, in their order; null for a missing one. No name may have a line end.
 */
export const findObjects = async <const Names extends readonly string[]>(
  { git }: GitDirs,
  names: Names,
): Promise<{ readonly [At in keyof Names]: string | null }> => {
  const input = Buffer.from(names.map((name) => `${name}\n`).join(''), 'latin1');
  const call = git(['cat-file', '--batch-check'], { input });
  const lines = (await requireGit('the repository cannot be read', call))
    .toString('latin1')
    .split('\n');
  const objects: readonly (string | null)[] = names.map(
    (_, at) => foundObject.exec(lines[at] ?? '')?.[1] ?? null,
  );
  return objects as { readonly [At in keyof Names]: string | null };
};

export const commitOf = async (dirs: GitDirs, name: string): Promise<string | null> =>
  (await findObjects(dirs, [`${name}^{commit}`]))[0];

export const commitText = ({ git }: GitDirs, commit: string, call: GitCall = {}): Promise<Buffer> =>
  requireGit('the commit cannot be read', git(['cat-file', 'commit', commit], call));

export const commonOf = async (
  { git }: GitDirs,
  ours: string,
  theirs: string,
): Promise<string | null> => {
  const found = await git(['merge-base', ours, theirs]);
  if (!found.ok && found.stderr !== '')
    throw new GitError(`the commits cannot be read: ${reasonIn(found.stderr)}`);
  return found.ok ? found.stdout.toString().trimEnd() : null;
};

export const contains = async (
  { git }: GitDirs,
  commit: string,
  ancestor: string,
): Promise<boolean> =>
  commit === ancestor || (await git(['merge-base', '--is-ancestor', ancestor, commit])).ok;

const asAgent = (role: string): Readonly<Record<string, string>> => {
  const [name, email] = [`agent-server (${role})`, 'agent-server@localhost'];
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  };
};

/** @throws GitError also when it cannot be signed */
export const commitTree = (
  { git }: GitDirs,
  {
    tree,
    parents,
    message,
    role,
    signing = unsigned,
  }: {
    readonly tree: string;
    readonly parents: readonly string[];
    readonly message: string;
    readonly role: string;
    readonly signing?: Signing;
  },
  signal?: AbortSignal,
): Promise<string> =>
  requiredLine(
    signing === unsigned
      ? 'the commit could not be created'
      : 'the commit could not be signed (merge.sign), which agent doctor tries',
    git(
      [
        ...signing.before,
        'commit-tree',
        ...signing.after,
        tree,
        ...parents.flatMap((parent) => ['-p', parent]),
        '-F',
        '-',
      ],
      {
        ...signing.call,
        input: message,
        signal,
        env: { ...asAgent(role), ...signing.call.env },
      },
    ),
  );

export interface MergedTree {
  readonly tree: string;
  /** Files with conflict markers, which name the sides. */
  readonly conflicts?: readonly string[];
  readonly sides: readonly [ours: string, theirs: string];
}

/**
 * The merge attributes (such as `merge=union`) at the top of our side. They name built-in drivers,
 * never a program.
 */
export const mergeAttributes = async (
  { git, temporary }: GitDirs,
  ours: string,
): Promise<readonly string[]> => {
  const attributes = await git(['cat-file', 'blob', `${ours}:.gitattributes`]);
  if (!attributes.ok || attributes.stdout.length > 1024 * 1024) return [];
  const file = join(temporary, 'merge-attributes');
  await writeFile(file, attributes.stdout);
  return ['-c', `core.attributesFile=${file}`];
};

/** Two commits with the trees of two others whose only common history is a third; any git merges them. */
const onBase = async (
  dirs: GitDirs,
  base: string,
  sides: readonly [string, string],
): Promise<readonly [string, string]> => {
  const tree = async (of: string, ...parents: readonly string[]): Promise<string> =>
    commitTree(dirs, {
      tree: `${of}^{tree}`,
      parents,
      message: 'A side of a merge',
      role: 'merge',
    });
  const root = await tree(base);
  return [await tree(sides[0], root), await tree(sides[1], root)];
};

/**
 * Merges two commits without a working tree. `base`: in place of their common history. @throws GitError
 * when this git cannot
 */
export const mergeTrees = async (
  dirs: GitDirs,
  ours: string,
  theirs: string,
  signal?: AbortSignal,
  base: string | null = null,
): Promise<MergedTree> => {
  if (!(await canMerge(dirs))) throw new GitError('merging needs git 2.38 or newer');
  const attributes = await mergeAttributes(dirs, ours);
  const sides: MergedTree['sides'] =
    base === null ? [ours, theirs] : await onBase(dirs, base, [ours, theirs]);
  const args = [
    ...attributes,
    'merge-tree',
    '--write-tree',
    '-z',
    '--name-only',
    '--no-messages',
    ...sides,
  ];
  const merged = await dirs.git(args, { signal });
  const [tree = '', ...names] = merged.stdout.toString().split('\0');
  if (merged.ok) return { tree, sides };
  if (merged.code === 1)
    return { tree, sides, conflicts: [...new Set(names.filter((name) => name !== ''))] };
  throw new GitError(`the commits could not be merged: ${reasonIn(merged.stderr)}`);
};

/**
 * Moves a branch from one commit to another; null means that it does not exist. The caller checked
 * that no part of the path is a link.
 */
export const moveBranch = async (
  { git, repository }: GitDirs,
  branch: string,
  to: string | null,
  from: string | null,
  call: GitCall = {},
): Promise<GitAnswer> => {
  const ref = `refs/heads/${branch}`;
  await requirePlainWay(repository.commonDir, ref);
  const zeros = '0'.repeat(repository.format === 'sha256' ? 64 : 40);
  const change = to === null ? ['-d', ref, from ?? ''] : ['-m', 'agent', ref, to, from ?? zeros];
  return git(['update-ref', '--no-deref', ...change], call);
};

/** The mode of a file that a side does not have. */
export const noFile = '000000';

export interface FileChange {
  readonly path: string;
  /** Octal file modes, or `noFile`. */
  readonly from: string;
  readonly to: string;
  readonly fromOid: string;
  readonly oid: string;
}

export const changesBetween = async (
  { git }: GitDirs,
  from: string,
  to: string,
  signal?: AbortSignal,
): Promise<readonly FileChange[]> => {
  const args = ['diff-tree', '-r', '-z', '--no-renames', from, to];
  const words = (await requireGit('the changes cannot be read', git(args, { signal })))
    .toString('latin1')
    .split('\0');
  const changes: FileChange[] = [];
  for (let at = 0; at + 1 < words.length; at += 2) {
    const [before = '', after = '', fromOid = '', oid = ''] = (words[at] ?? '').slice(1).split(' ');
    changes.push({ path: words[at + 1] ?? '', from: before, to: after, fromOid, oid });
  }
  return changes;
};
