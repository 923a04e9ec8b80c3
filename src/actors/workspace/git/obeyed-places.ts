import { realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { type LinkPlace, linksIn, placesOfLinks, relativeInside } from '../../files/link-places.ts';
import { protectionOf } from '../../files/protected-paths.ts';
import { requireGit } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { type GitSettings, readGitSettings } from './repository-config.ts';

const userFiles = (): readonly string[] => [
  join(process.env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'git/config'),
  join(homedir(), '.gitconfig'),
];

const readUsers = async (program: string, file: string): Promise<GitSettings> => {
  try {
    return await readGitSettings(program, await realpath(file));
  } catch {
    return new Map();
  }
};

/**
 * Finds the folders in the working tree whose files git runs as hooks (`core.hooksPath`): as
 * written, and with its links resolved. Included settings files are not read.
 */
export const hookFolders = async (
  program: string,
  top: string,
  settings: GitSettings,
): Promise<readonly string[]> => {
  const users = await Promise.all(userFiles().map((file) => readUsers(program, file)));
  const named = [...users, settings].flatMap((each) => each.get('core.hookspath') ?? []).at(-1);
  if (named === undefined || named === '') return [];
  const folder = resolve(top, named.replace(/^~(?=\/)/, homedir()));
  const real = await realpath(folder).catch(() => folder);
  return [...new Set([folder, real].flatMap((each) => relativeInside(top, each) ?? []))];
};

/**
 * True when a change of this path can change a hook: the path is in the folder, or is a link on the
 * way to it.
 */
const isHook = (folders: readonly string[], path: string): boolean => {
  const name = path.toLowerCase();
  return folders.some((each) => {
    const folder = each.toLowerCase();
    if (folder === '') return !name.includes('/');
    return name === folder || name.startsWith(`${folder}/`) || folder.startsWith(`${name}/`);
  });
};

const knownAtMost = 20;
/** The links of a commit never change. */
const linksOfCommits = new Map<string, readonly string[]>();

const linksInCommit = async ({ git }: GitDirs, commit: string): Promise<readonly string[]> => {
  const known = commit === '' ? [] : linksOfCommits.get(commit);
  if (known !== undefined) return known;
  const args = ['ls-tree', '-r', '-z', '--format=%(objectmode) %(path)', commit];
  const said = (await requireGit('its links cannot be read', git(args))).toString();
  const links = said
    .split('\0')
    .filter((line) => line.startsWith('120000 '))
    .map((line) => line.slice('120000 '.length));
  linksOfCommits.set(commit, links);
  for (const oldest of [...linksOfCommits.keys()].slice(0, -knownAtMost))
    linksOfCommits.delete(oldest);
  return links;
};

const linksOf = async (dirs: GitDirs, commit: string): Promise<ReadonlySet<string>> => {
  const { top, prefix } = dirs.repository;
  const below = linksIn(join(top, prefix)).map((name) => prefix + name);
  return new Set([...(await linksInCommit(dirs, commit)), ...linksIn(top), ...below]);
};

/**
 * Targets of links with protected names in the user's folder. They are protected like the names.
 */
const linkedPlaces = async (dirs: GitDirs, commit: string): Promise<readonly LinkPlace[]> =>
  placesOfLinks(dirs.repository.top, await linksOf(dirs, commit));

/** With the places that the server trusts. */
export const protectedPlaces = async (
  dirs: GitDirs,
  commit: string,
): Promise<readonly LinkPlace[]> => [
  ...(await linkedPlaces(dirs, commit)),
  ...dirs.repository.trusted.map((path) => ({ path, protection: 'held' as const })),
];

export const obeyedIn = async (
  dirs: GitDirs,
  commit: string,
): Promise<(path: string) => boolean> => {
  const places = [
    ...dirs.repository.hooks,
    ...(await protectedPlaces(dirs, commit)).map(({ path }) => path),
  ];
  return (path) => protectionOf(path) !== null || isHook(places, path);
};
