import { lstat, readdir } from 'node:fs/promises';
import { posix } from 'node:path';
import { isMissing } from '../../files/error-code.ts';
import { foldersOf, looksLikeGit, shownName } from '../folders/names.ts';
import { type FileChange, findObjects, noFile } from '../git/commits.ts';
import { requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { isPresent } from '../git/plain.ts';
import type { UpdatePlaces } from './update-record.ts';

/** The most entries that a merge checks in a folder that the work replaces. */
const folderEntriesAtMost = 100_000;

type Occupant = 'folder' | 'other' | null;

export const atTop = ({ repository }: GitDirs, path: string): Buffer =>
  Buffer.from(`${repository.top}/${path}`, 'latin1');

const kindAt = async (dirs: GitDirs, path: string): Promise<Occupant> => {
  try {
    return (await lstat(atTop(dirs, path))).isDirectory() ? 'folder' : 'other';
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
};

/**
 * The first entry of a folder that the work does not remove; the folder itself when it is too large
 * to check.
 */
const keptIn = async (
  dirs: GitDirs,
  top: string,
  removed: ReadonlySet<string>,
): Promise<string | null> => {
  const left = [top];
  let seen = 0;
  for (let path = left.pop(); path !== undefined; path = left.pop()) {
    if (removed.has(path)) continue;
    if ((await kindAt(dirs, path)) === 'other') return path;
    const names = await readdir(atTop(dirs, path), 'latin1').catch(() => null);
    seen += names?.length ?? 0;
    if (names === null || seen > folderEntriesAtMost) return path;
    for (const name of names) left.push(`${path}/${name}`);
  }
  return null;
};

/** The user's files, ignored ones included, that a merge would overwrite. */
const findUsersFiles = async (
  dirs: GitDirs,
  changes: readonly FileChange[],
): Promise<readonly string[]> => {
  const removed = new Set(changes.filter(({ to }) => to === noFile).map(({ path }) => path));
  const emptied = foldersOf(removed);
  const found = new Set<string>();
  for (const folder of foldersOf(changes.map(({ path }) => path))) {
    const path = folder.slice(0, -1);
    if (!removed.has(path) && (await kindAt(dirs, path)) === 'other') found.add(path);
  }
  for (const { path, from } of changes) {
    if (from !== noFile || (await kindAt(dirs, path)) === null) continue;
    const kept = emptied.has(`${path}/`) ? await keptIn(dirs, path, removed) : path;
    if (kept !== null) found.add(kept);
  }
  return [...found];
};

export interface Checkout {
  readonly branch: string | null;
  readonly into: string;
  readonly index: string;
  readonly places: UpdatePlaces;
  readonly filters: readonly string[];
}

export interface Stopped {
  readonly why: string;
  readonly files: readonly string[];
}

const link = '120000';
const gitlink = '160000';
export const stop = (why: string, files: readonly string[] = []): Stopped => ({ why, files });
const shownNames = (changes: readonly FileChange[]): readonly string[] =>
  changes.map(({ path }) => shownName(path));

/**
 * True for a link that leads up, but not out of the project, then down, and not into `.git`. A `..`
 * after a name is refused, since the name may be a link itself. If all links are so, none leads
 * out, whatever they go through.
 */
export const staysInside = (path: string, target: string): boolean => {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const names = parts.findIndex((part) => part !== '..');
  const [up, down] = names < 0 ? [parts, []] : [parts.slice(0, names), parts.slice(names)];
  const depth = path.split('/').length - 1;
  return (
    !target.startsWith('/') &&
    up.length <= depth &&
    !down.includes('..') &&
    !down.some(looksLikeGit)
  );
};

const leavesProject = async ({ git }: GitDirs, { path, oid }: FileChange): Promise<boolean> =>
  !staysInside(
    path,
    (await requireGit('a link cannot be read', git(['cat-file', 'blob', oid]))).toString('latin1'),
  );

const repositoryParts = ['HEAD', 'objects', 'refs', 'commondir'] as const;

/**
 * Folders that would become repositories with this work: git obeys the configuration of such a
 * folder.
 */
const newRepositories = async (
  dirs: GitDirs,
  { head, target }: { readonly head: string; readonly target: string },
  changes: readonly FileChange[],
): Promise<readonly string[]> => {
  const added = new Set(changes.filter(({ from }) => from === noFile).map(({ path }) => path));
  const parts = [...added, ...foldersOf(added)].map((path) => path.replace(/\/$/, ''));
  const isPart = (path: string): boolean =>
    repositoryParts.some((part) => part === posix.basename(path));
  const folders = [
    ...new Set(parts.filter(isPart).map((path) => path.slice(0, path.lastIndexOf('/') + 1))),
  ];
  const asked = folders.filter((folder) => !folder.includes('\n'));
  const names = asked.flatMap((folder) => repositoryParts.map((part) => `${folder}${part}`));
  if (folders.length === 0) return [];
  const inTree = await findObjects(
    dirs,
    [head, target].flatMap((tree) => names.map((name) => `${tree}:${name}`)),
  );
  const after = await Promise.all(
    names.map(
      async (name, at) =>
        inTree[names.length + at] !== null || (await isPresent(atTop(dirs, name))),
    ),
  );
  const acts = (has: (at: number) => boolean, folder: number): boolean => {
    const [isHead, objects, refs, common] = repositoryParts.map((_, part) =>
      has(folder * repositoryParts.length + part),
    );
    return isHead === true && ((objects === true && refs === true) || common === true);
  };
  const planted = asked.filter(
    (_, at) => acts((n) => after[n] === true, at) && !acts((n) => inTree[n] !== null, at),
  );
  return [...planted, ...folders.filter((folder) => !asked.includes(folder))];
};

export const repositoryMade = async (
  dirs: GitDirs,
  move: { readonly head: string; readonly target: string },
  changes: readonly FileChange[],
): Promise<Stopped | null> => {
  const repositories = await newRepositories(dirs, move, changes);
  if (repositories.length === 0) return null;
  return stop(
    'the work turns a folder into a git repository; if that is intended, merge it with git yourself',
    repositories.map((folder) => shownName(folder === '' ? '.' : folder.slice(0, -1))),
  );
};

export const findObstacle = async (
  dirs: GitDirs,
  move: { readonly head: string; readonly target: string },
  changes: readonly FileChange[],
): Promise<Stopped | null> => {
  const modules = changes.filter(({ from, to }) => from === gitlink || to === gitlink);
  if (modules.length > 0)
    return stop('submodules were changed; merge them with git yourself', shownNames(modules));
  for (const change of changes)
    if (change.to === link && (await leavesProject(dirs, change)))
      return stop(
        `${shownName(change.path)} is a link that may lead out of the project, or into .git; if that is intended, merge it with git yourself`,
        shownNames([change]),
      );
  const made = await repositoryMade(dirs, move, changes);
  if (made !== null) return made;
  const taken = await findUsersFiles(dirs, changes);
  if (taken.length > 0)
    return stop(
      'the project folder has files of yours at the same paths: move or commit them first',
      taken.map(shownName),
    );
  const absent: FileChange[] = [];
  for (const change of changes)
    if (
      change.from !== noFile &&
      change.to !== noFile &&
      !(await isPresent(atTop(dirs, change.path)))
    )
      absent.push(change);
  if (absent.length > 0) return stop('you deleted files that the work changed', shownNames(absent));
  return null;
};
