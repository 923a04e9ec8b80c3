import { join } from 'node:path';
import { type LinkPlace, linksIn, placesOfLinks } from '../../files/link-places.ts';
import { protectionOf } from '../../files/protected-paths.ts';
import { requireGit } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { isHook } from './hooks-folder.ts';

const linksOf = async (
  { git, repository: { top, prefix } }: GitDirs,
  commit: string,
): Promise<ReadonlySet<string>> => {
  const args = ['ls-tree', '-r', '-z', '--format=%(objectmode) %(path)', commit];
  const said =
    commit === '' ? '' : (await requireGit('its links cannot be read', git(args))).toString();
  const links = said.split('\0').filter((line) => line.startsWith('120000 '));
  const below = linksIn(join(top, prefix)).map((name) => prefix + name);
  return new Set([...links.map((line) => line.slice('120000 '.length)), ...linksIn(top), ...below]);
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
