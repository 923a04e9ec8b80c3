import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { ObjectFormat } from './blobs.ts';
import { createGit, GitError, requireGit } from './git.ts';
import { plainText } from './plain.ts';

export type GitSettings = ReadonlyMap<string, string>;

const knownSettings = new Map<string, GitSettings>();
const mostKnown = 20;

/** Reads a configuration file as data, without includes. The last value of a key counts. */
export const readGitSettings = async (program: string, file: string): Promise<GitSettings> => {
  const input = (await plainText(file)) ?? '';
  if (input === '') return new Map();
  const before = knownSettings.get(input);
  if (before !== undefined) return before;
  const args = ['config', '--file', '-', '--no-includes', '-z', '--list'];
  const listed = await requireGit(
    `${file} cannot be read`,
    createGit(program, '/nonexistent')(args, { input }),
  );
  const pairs = listed.toString().split('\0').filter(Boolean);
  const settings = new Map(
    pairs.map((pair): [string, string] => {
      const cut = pair.indexOf('\n');
      return cut < 0 ? [pair, 'true'] : [pair.slice(0, cut), pair.slice(cut + 1)];
    }),
  );
  if (knownSettings.size >= mostKnown) knownSettings.clear();
  knownSettings.set(input, settings);
  return settings;
};

const carriedKeys = ['autocrlf', 'eol', 'filemode', 'symlinks', 'ignorecase', 'precomposeunicode'];
const carriedValue = /^(true|false|input|lf|crlf|native)$/i;

export const carriedOf = (settings: GitSettings): readonly (readonly [string, string])[] =>
  carriedKeys.flatMap((key) => {
    const value = settings.get(`core.${key}`);
    return value !== undefined && carriedValue.test(value) ? [[`core.${key}`, value] as const] : [];
  });

export const isOn = (value: string | undefined): boolean =>
  value !== undefined && !/^(false|no|off|0|)$/i.test(value);
const knownExtensions = new Set([
  'extensions.worktreeconfig',
  'extensions.objectformat',
  'extensions.noop',
  'extensions.compatobjectformat',
]);

export const formatOf = (settings: GitSettings): ObjectFormat => {
  const format = settings.get('extensions.objectformat') ?? 'sha1';
  if (format === 'sha1' || format === 'sha256') return format;
  throw new GitError(`this repository uses the object format ${format}, which is not supported`);
};

/** @throws GitError with a way out for settings that agents cannot work with */
export const refuseUnsupported = async (
  settings: GitSettings,
  gitDir: string,
  top: string,
): Promise<void> => {
  const keys = [...settings.keys()];
  if (
    keys.some((key) => /^remote\..*\.(promisor|partialclonefilter)$/.test(key)) ||
    settings.has('extensions.partialclone')
  )
    throw new GitError(
      'this repository is a partial clone; agents need all files: run git fetch --refetch --no-filter, or set workspace.mode to shared',
    );
  if (isOn(settings.get('core.sparsecheckout')) || isOn(settings.get('index.sparse')))
    throw new GitError('this checkout is sparse; run git sparse-checkout disable');
  if (isOn(settings.get('core.splitindex')))
    throw new GitError('this repository uses a split index; run git update-index --no-split-index');
  const extension = keys.find((key) => key.startsWith('extensions.') && !knownExtensions.has(key));
  if (extension !== undefined)
    throw new GitError(`this repository uses ${extension}, which is not supported`);
  const version = settings.get('core.repositoryformatversion') ?? '0';
  if (version !== '0' && version !== '1')
    throw new GitError(`this repository has the format version ${version}, which is not supported`);
  const worktree = settings.get('core.worktree');
  if (worktree === undefined) return;
  const folder = await realpath(worktree.startsWith('/') ? worktree : join(gitDir, worktree)).catch(
    () => null,
  );
  if (folder !== top)
    throw new GitError('core.worktree of this repository points to another folder');
};
