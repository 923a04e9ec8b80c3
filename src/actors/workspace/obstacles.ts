import { dirname, posix } from 'node:path';
import type { FileChange } from './commits.ts';
import { required } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { shownName } from './names.ts';
import { isPresent } from './plain.ts';

/** The user's own working tree, and what may be done there. */
export interface Checkout {
  /** Its branch; null when it is on none. */
  readonly branch: string | null;
  /** What the branch is called for people. */
  readonly into: string;
  readonly index: string;
  /** Filters that the user allows by name (`workspace.filters`). */
  readonly filters: readonly string[];
}

export interface Stopped {
  readonly why: string;
  readonly files: readonly string[];
}

const nothing = '000000';
const link = '120000';
const gitlink = '160000';
export const stop = (why: string, files: readonly string[] = []): Stopped => ({ why, files });
const shown = (changes: readonly FileChange[]): readonly string[] => changes.map(({ path }) => shownName(path));

/** A new link that leads out of the project: whoever follows it later leaves the project. */
const leavesProject = async ({ git }: GitDirs, { path, oid }: FileChange): Promise<boolean> => {
  const target = (await required('a link cannot be read', git(['cat-file', 'blob', oid]))).toString('latin1');
  return target.startsWith('/') || posix.join(dirname(path), target).split('/')[0] === '..';
};

/** What the work would do that a merge never does, or what of the user's would be lost. */
export const findObstacle = async (dirs: GitDirs, changes: readonly FileChange[]): Promise<Stopped | null> => {
  const at = ({ path }: FileChange): Buffer => Buffer.from(`${dirs.repository.top}/${path}`, 'latin1');
  const modules = changes.filter(({ from, to }) => from === gitlink || to === gitlink);
  if (modules.length > 0) return stop('submodules were changed; merge them with git yourself', shown(modules));
  for (const change of changes)
    if (change.to === link && (await leavesProject(dirs, change)))
      return stop(
        `${shownName(change.path)} is a link to a place outside the project; merge it with git yourself if that is meant`,
        shown([change]),
      );
  const removed = new Set(changes.filter(({ to }) => to === nothing).map(({ path }) => path));
  const replacesFolder = ({ path }: FileChange): boolean => [...removed].some((gone) => gone.startsWith(`${path}/`));
  const taken: FileChange[] = [];
  const absent: FileChange[] = [];
  for (const change of changes) {
    const there = await isPresent(at(change));
    if (change.from === nothing && there && !replacesFolder(change)) taken.push(change);
    if (change.from !== nothing && change.to !== nothing && !there) absent.push(change);
  }
  if (taken.length > 0) return stop('the project folder has files of yours in the same places', shown(taken));
  if (absent.length > 0) return stop('you deleted files that the work changed', shown(absent));
  return null;
};
