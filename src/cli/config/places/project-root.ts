import { lstatSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { dirname, isAbsolute, join, parse, resolve, sep } from 'node:path';
import { readRegular } from '../../../actors/files/regular-file.ts';

const uid = process.getuid?.();
/** Windows has no user ids: everything is the user's own. */
export const isOwn = (found: Stats): boolean => uid === undefined || found.uid === uid;

/** A group with the user's number is the user's own on most Linux systems. */
const othersMayWrite = ({ mode, gid }: Stats): boolean =>
  uid !== undefined && ((mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid));

/** Null also for a path that cannot be one, such as a very long one. */
const statOrNull = (path: string): Stats | null => {
  try {
    return statSync(path);
  } catch {
    return null;
  }
};

export const isFolder = (path: string): boolean => statOrNull(path)?.isDirectory() === true;
const isFile = (path: string): boolean => statOrNull(path)?.isFile() === true;

const isGitDir = (path: string): boolean =>
  isFile(join(path, 'HEAD')) &&
  (isFile(join(path, 'commondir')) ||
    (isFolder(join(path, 'objects')) && isFolder(join(path, 'refs'))));

const pointerBytesAtMost = 4_096;

/** The folder `.git`, or the target of the file `.git`; null when it is no valid git directory. */
export const gitDirOf = (folder: string): string | null => {
  const path = join(folder, '.git');
  try {
    if (isFolder(path)) return isGitDir(path) ? path : null;
    const [, target] = /^gitdir: (.+)\n?$/.exec(readRegular(path, pointerBytesAtMost)) ?? [];
    const found = target === undefined ? null : resolve(folder, target);
    return found !== null && isGitDir(found) ? found : null;
  } catch {
    return null;
  }
};

const isOwnEntry = (path: string): boolean => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found !== undefined && isOwn(found);
};

const isProjectRoot = (folder: string): boolean => {
  const beads = join(folder, '.beads');
  if (isOwnEntry(beads) && lstatSync(beads).isDirectory()) return true;
  return isOwnEntry(join(folder, '.git')) && gitDirOf(folder) !== null;
};

/** The same for every name of a folder: a bind mount, another case, a link. */
const idOf = (folder: string): string | null => {
  try {
    const { dev, ino } = statSync(folder, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
};

/** Null for what is no link, or cannot be reached. */
const linkTarget = (path: string): string | null => {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
};

const linksAtMost = 100;

/**
 * The folders that a path goes through, with those of each link on the way, and its end. Whoever may
 * write in one of them decides what is at the path. Parts that do not exist are left out.
 */
const folderIdsOn = (path: string): ReadonlySet<string> => {
  const ids = new Set<string>();
  const enter = (folder: string): void => {
    const id = idOf(folder);
    if (id !== null) ids.add(id);
  };
  const whole = resolve(path);
  let at = parse(whole).root;
  let left: readonly string[] = whole.slice(at.length).split(sep).filter(Boolean);
  for (let links = 0; left.length > 0; ) {
    enter(at);
    const [name = '', ...rest] = left;
    const next = name === '..' ? dirname(at) : join(at, name);
    left = rest;
    const target = linkTarget(next);
    if (target === null) {
      at = next;
      continue;
    }
    links += 1;
    if (links > linksAtMost) break;
    if (isAbsolute(target)) at = parse(target).root;
    left = [...target.split(sep).filter((part) => part !== '' && part !== '.'), ...rest];
  }
  enter(at);
  return ids;
};

/** True when the path, or a link on its way, lies in one of the folders, or is one of them. */
export const liesIn = (path: string, folders: readonly string[]): boolean => {
  const ids = folderIdsOn(path);
  return folders.some((folder) => ids.has(idOf(folder) ?? ''));
};

/** The top of the repository that a folder lies in; null when there is none. */
export const repositoryTop = (folder: string): string | null => {
  for (let at = folder; ; at = dirname(at)) {
    if (gitDirOf(at) !== null) return at;
    if (at === dirname(at)) return null;
  }
};

/** The git directory that a folder is, or lies in, without a working tree in between. */
const gitDirAround = (folder: string): string | null => {
  for (let at = folder; gitDirOf(at) === null; at = dirname(at)) {
    if (isGitDir(at)) return at;
    if (at === dirname(at)) return null;
  }
  return null;
};

export interface PrivateFolders {
  readonly homes: readonly string[];
  /** The state folder in use. */
  readonly state: string;
  /** Holds the default state folder of every project. */
  readonly allStates: string;
  readonly config: string;
}

interface PlaceProblem {
  readonly path: string;
  readonly problem: string;
  readonly remedy: string;
}

const otherFolder = 'go to the folder of your project, or name it with --project';

const problemOfFolder = (
  path: string,
  { homes, state: inUse, allStates, config }: PrivateFolders,
): Omit<PlaceProblem, 'path'> | null => {
  const holds = (place: string): boolean => liesIn(place, [path]);
  const remedy = otherFolder;
  if (path === dirname(path)) return { problem: 'is the root of the file system', remedy };
  if (homes.some((home) => idOf(home) === idOf(path)))
    return { problem: 'is your home folder, with keys that no agent may read', remedy };
  const home = homes.find(holds);
  if (home !== undefined) return { problem: `holds your home folder (${home})`, remedy };
  const state = [inUse, allStates].find(holds);
  if (state !== undefined)
    return {
      problem: `holds the state folder ${state}, with the token of the server`,
      remedy: 'set AGENT_STATE_DIR to a folder outside of it, or use another folder as the project',
    };
  if (holds(config)) return { problem: `holds your configuration folder (${config})`, remedy };
  const around = [config, allStates].find((folder) => liesIn(path, [folder]));
  return around === undefined
    ? null
    : { problem: `lies in ${around}, which is the server's`, remedy };
};

/** A state folder that is no folder of its own: the server would keep its files among the user's. */
const stateProblem = (state: string, homes: readonly string[]): PlaceProblem | null => {
  const remedy =
    'set AGENT_STATE_DIR to a folder of its own, such as ~/.local/state/agent, or unset it';
  const problem = (what: string): PlaceProblem => ({
    path: state,
    problem: `(AGENT_STATE_DIR) ${what}, and can be no state folder`,
    remedy,
  });
  if (state === dirname(state)) return problem('is the root of the file system');
  const home = homes.find((each) => liesIn(each, [state]));
  if (home === undefined) return null;
  return problem(
    idOf(home) === idOf(state) ? 'is your home folder' : `holds your home folder (${home})`,
  );
};

/**
 * Why a folder can be no project: agents would read or write what belongs to the user or the server,
 * or git would run what they leave there. Null when it can.
 */
export const placeProblem = (root: string, folders: PrivateFolders): PlaceProblem | null => {
  const own = problemOfFolder(root, folders);
  if (own !== null) return { path: root, ...own };
  const { state, homes } = folders;
  const ofState = stateProblem(state, homes);
  if (ofState !== null) return ofState;
  if (liesIn(root, [state]))
    return {
      path: root,
      problem: `lies in the state folder ${state}`,
      remedy: 'set AGENT_STATE_DIR to a folder outside of the project and of what holds it',
    };
  const gitDir = gitDirAround(root);
  if (gitDir !== null)
    return {
      path: root,
      problem:
        gitDir === root
          ? 'is a bare git repository, which has no files to work on'
          : `lies in the git directory ${gitDir}`,
      remedy: `clone it, and use the clone as the project: git clone ${gitDir} <folder>`,
    };
  const top = repositoryTop(root);
  if (top === null) return null;
  const around = top === root ? null : problemOfFolder(top, folders);
  if (around === null) return null;
  return {
    path: top,
    problem: `${around.problem}, and the repository of ${root}`,
    remedy: `make the project a repository of its own: git init ${root}`,
  };
};

/**
 * The nearest folder upward that the user owns and that is a valid repository or contains
 * `.beads/`. Null when there is none below the first folder that others may write, or that can be no
 * project.
 */
export const nearestRoot = (from: string, homes: readonly string[]): string | null => {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = statSync(folder);
    if (othersMayWrite(found) || homes.some((home) => liesIn(home, [folder]))) return null;
    if (isOwn(found) && isProjectRoot(folder)) return folder;
    if (folder === dirname(folder)) return null;
  }
};
