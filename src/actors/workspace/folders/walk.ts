import { closeSync, type Stats } from 'node:fs';
import { hasCode } from '../../files/error-code.ts';
import { isAtPlace } from '../../files/link-places.ts';
import { type Index, type IndexEntry, noteOf } from '../git/index-file.ts';
import { isEmptyFolder, look, namesInHandle, openBelow, openFolderIn } from './handles.ts';
import { createNameRules, foldersOf, type NameRule, shownName } from './names.ts';

/** A file or link that may have changed. Its folder is open during the callback. */
export interface WalkCandidate {
  /** From the top of the tree; latin1, like all names here. */
  readonly path: string;
  readonly folder: number;
  readonly name: string;
  readonly stat: Stats;
  readonly before: IndexEntry | undefined;
  /** The committed version stays; a change is noted. */
  readonly held: boolean;
}

export interface WalkOptions {
  readonly index: Index;
  readonly prefix: string;
  /** True to leave out names that other programs obey; false in the user's own folder. */
  readonly protects: boolean;
  readonly heldPlaces: readonly string[];
  /** True when the top is a repository: then a bare one there is not obeyed. */
  readonly isRepository: boolean;
  readonly hasIgnoreRules: boolean;
  /**
   * Returns the ignored ones of the new paths (folders end with `/`). `showRules` got the folders'
   * `.gitignore` before.
   */
  readonly ignored: (paths: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly showRules: (folder: number, path: string) => void;
  readonly take: (candidate: WalkCandidate) => void;
  readonly note: (text: string) => void;
  readonly leave: (path: string, why: string) => void;
  /** It is not entered. */
  readonly submodule: (path: string) => void;
  /** @throws when the walk must end */
  readonly checkpoint: () => void;
}

const linkMode = 0o120000;
export const gitlinkMode = 0o160000;
const deepestWalk = 300;
/** Bytes. The system still accepts the path below a folder of ours. */
const longestPath = 3_000;
const mostEntries = 2_000_000;

interface Walk {
  readonly options: WalkOptions;
  readonly root: number;
  readonly rulesOf: (name: string) => NameRule;
  readonly folders: ReadonlySet<string>;
  readonly seen: Set<string>;
  /** Parts that were not read: the index entries there are not deleted. */
  readonly skipped: Set<string>;
  unknown: Unknown[];
  entries: number;
}

/** A path that the index does not have; the ignore rules decide. */
interface Unknown {
  readonly parent: string;
  readonly name: string;
  readonly isFolder: boolean;
}

const obeyed = 'it would turn the folder into a git repository';

/** A folder that git takes for a repository. */
const isBareRepository = (names: readonly string[]): boolean =>
  names.includes('HEAD') &&
  ((names.includes('objects') && names.includes('refs')) || names.includes('commondir'));

/** It was removed, or something else is in its place. */
export const isGone = (error: unknown): boolean =>
  hasCode(error, 'ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL');

/** Its mode forbids access, or it is a socket. */
export const isShut = (error: unknown): boolean => hasCode(error, 'EACCES', 'EPERM', 'ENXIO');

const takeFile = (
  walk: Walk,
  folder: number,
  parent: string,
  name: string,
  stat: Stats,
  held: boolean,
): void => {
  const path = parent + name;
  const before = walk.options.index.entries.get(path);
  const sameKind = before !== undefined && (before.mode === linkMode) === stat.isSymbolicLink();
  if (
    sameKind &&
    before.note === noteOf(stat) &&
    before.changedAtMs < walk.options.index.trustedBeforeMs
  )
    return;
  walk.options.take({ path, folder, name, stat, before, held });
};

const skipPath = (walk: Walk, path: string, why: string | null): void => {
  walk.skipped.add(path.replace(/\/$/, ''));
  if (why !== null) walk.options.note(why);
};

const leaveOut = (walk: Walk, path: string, why: string): void => {
  skipPath(walk, path, null);
  walk.options.leave(path, why);
};

/** Git stores no empty folder, and the sandbox leaves one where it covered a protected name. */
const leaveOutNew = (
  walk: Walk,
  folder: number,
  path: string,
  name: string,
  isFolder: boolean,
): void => {
  if (isFolder && isEmptyFolder(folder, name)) skipPath(walk, path, null);
  else leaveOut(walk, path, 'other programs run or trust it, so agents may not create it');
};

const visit = (
  walk: Walk,
  folder: number,
  parent: string,
  name: string,
  held: boolean,
  ruled: boolean,
): void => {
  const path = parent + name;
  const rule = walk.rulesOf(name);
  if (rule.isRepository && parent !== '')
    walk.options.note(
      `${shownName(parent.slice(0, -1))} is a repository of its own; its files were saved, its history was not`,
    );
  if (path === '.git' || (rule.isRepository && parent !== '')) return;
  if (rule.isRepository || rule.isRefused) leaveOut(walk, path, 'git refuses this name');
  else if (path.length > longestPath)
    skipPath(walk, path, `${shownName(path.slice(0, 100))}… was not saved: its path is too long`);
  else if (walk.options.index.entries.get(path)?.mode === gitlinkMode) {
    skipPath(walk, path, null);
    walk.options.submodule(path);
  } else
    visitEntry(
      walk,
      folder,
      parent,
      name,
      held || (walk.options.protects && rule.protection === 'held'),
      ruled,
    );
};

const lookAt = (walk: Walk, folder: number, parent: string, name: string): Stats | null => {
  try {
    return look(folder, name);
  } catch (error) {
    if (!isShut(error)) throw error;
    leaveOut(walk, parent + name, 'it cannot be read');
    return null;
  }
};

/**
 * A folder on the way to a place is not held itself; anything else in its place would redirect the
 * link.
 */
const isHeldPlace = (
  { options: { protects, heldPlaces } }: Walk,
  path: string,
  isFolder: boolean,
): boolean => protects && (isFolder ? heldPlaces.includes(path) : isAtPlace(heldPlaces, path));

const visitEntry = (
  walk: Walk,
  folder: number,
  parent: string,
  name: string,
  heldAbove: boolean,
  ruled: boolean,
): void => {
  const path = parent + name;
  const stat = lookAt(walk, folder, parent, name);
  if (stat === null) return;
  const isFolder = stat.isDirectory();
  const held = heldAbove || isHeldPlace(walk, path, isFolder);
  const isKnown = isFolder ? walk.folders.has(`${path}/`) : walk.options.index.entries.has(path);
  if (held && !isKnown) leaveOutNew(walk, folder, path, name, isFolder);
  else if (!isFolder && !stat.isFile() && !stat.isSymbolicLink())
    leaveOut(walk, path, 'it is a pipe, socket or device');
  else {
    if (!isFolder) walk.seen.add(path);
    if (!isKnown && ruled) walk.unknown.push({ parent, name, isFolder });
    else if (isFolder) enter(walk, folder, parent, name, held, ruled);
    else takeFile(walk, folder, parent, name, stat, held);
  }
};

const openInside = (walk: Walk, folder: number, parent: string, name: string): number | null => {
  const path = parent + name;
  try {
    if (path.split('/').length <= deepestWalk) return openFolderIn(folder, name);
    leaveOut(walk, path, 'it is too deep');
  } catch (error) {
    if (!isGone(error)) leaveOut(walk, path, 'it cannot be read');
  }
  return null;
};

const enter = (
  walk: Walk,
  folder: number,
  parent: string,
  name: string,
  held: boolean,
  ruled: boolean,
): void => {
  const inside = openInside(walk, folder, parent, name);
  if (inside === null) return;
  try {
    readFolder(walk, inside, `${parent}${name}/`, held, ruled);
  } finally {
    closeSync(inside);
  }
};

const readFolder = (
  walk: Walk,
  folder: number,
  path: string,
  held: boolean,
  ruledAbove: boolean,
): void => {
  walk.options.checkpoint();
  const names = namesInHandle(folder);
  walk.entries += names.length;
  if (walk.entries > mostEntries)
    throw new Error(
      `the folder has more than ${mostEntries} files; remove files that are not needed`,
    );
  const actsAsRepository = isBareRepository(names) && !(path === '' && walk.options.isRepository);
  if (actsAsRepository) leaveOut(walk, path === '' ? 'HEAD' : path.slice(0, -1), obeyed);
  if (actsAsRepository && path !== '') return;
  const hasOwn = names.includes('.gitignore');
  if (hasOwn) walk.options.showRules(folder, path);
  for (const name of names)
    if (!(actsAsRepository && name === 'HEAD'))
      visit(walk, folder, path, name, held, ruledAbove || hasOwn);
};

const takeNew = (
  walk: Walk,
  folder: number,
  parent: string,
  name: string,
  isFolder: boolean,
): void => {
  const stat = lookAt(walk, folder, parent, name);
  if (stat === null || stat.isDirectory() !== isFolder) return;
  if (isFolder) enter(walk, folder, parent, name, false, true);
  else if (stat.isFile() || stat.isSymbolicLink())
    takeFile(walk, folder, parent, name, stat, false);
};

/** Visits the new paths that no rule ignores; folders among them add further new paths. */
const takeUnknown = async (walk: Walk): Promise<void> => {
  const asked = walk.unknown;
  walk.unknown = [];
  const ignored = await walk.options.ignored(
    asked.map((each) => each.parent + each.name + (each.isFolder ? '/' : '')),
  );
  let open = null as { readonly parent: string; readonly folder: number } | null;
  const openAt = (parent: string): number => {
    if (open?.parent === parent) return open.folder;
    if (open !== null) closeSync(open.folder);
    open = null;
    open = { parent, folder: openBelow(walk.root, parent) };
    return open.folder;
  };
  for (const { parent, name, isFolder } of asked) {
    if (ignored.has(parent + name + (isFolder ? '/' : ''))) continue;
    try {
      takeNew(walk, openAt(parent), parent, name, isFolder);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  if (open !== null) closeSync(open.folder);
};

/** The folders above the part that is read have rules too. */
const rulesAbove = (walk: Walk): boolean => {
  let found = walk.options.hasIgnoreRules;
  for (
    let end = 0;
    end < walk.options.prefix.length;
    end = walk.options.prefix.indexOf('/', end) + 1
  ) {
    const above = openBelow(walk.root, walk.options.prefix.slice(0, end));
    try {
      if (look(above, '.gitignore') === null) continue;
      walk.options.showRules(above, walk.options.prefix.slice(0, end));
      found = true;
    } finally {
      closeSync(above);
    }
  }
  return found;
};

const isUnread = (walk: Walk, path: string): boolean => {
  if (walk.skipped.has(path)) return true;
  for (let at = path.lastIndexOf('/'); at >= 0; at = path.lastIndexOf('/', at - 1))
    if (walk.skipped.has(path.slice(0, at))) return true;
  if (!walk.options.protects) return false;
  return (
    isAtPlace(walk.options.heldPlaces, path) ||
    path.split('/').some((part) => walk.rulesOf(part).protection === 'held')
  );
};

/**
 * Reads a folder that somebody else may be changing: by open handles, following no link, entering
 * no repository. Reports each file and link that is new or may have changed. @returns the paths of
 * the index that are gone
 */
export const walk = async (root: number, options: WalkOptions): Promise<readonly string[]> => {
  const under: Walk = {
    options,
    root,
    rulesOf: createNameRules(),
    folders: foldersOf(options.index.entries.keys()),
    seen: new Set(),
    skipped: new Set(),
    unknown: [],
    entries: 0,
  };
  const ruled = rulesAbove(under);
  const top = openBelow(under.root, under.options.prefix);
  try {
    readFolder(under, top, under.options.prefix, false, ruled);
  } finally {
    closeSync(top);
  }
  while (under.unknown.length > 0) await takeUnknown(under);
  const gone: string[] = [];
  for (const path of under.options.index.entries.keys())
    if (!under.seen.has(path) && path.startsWith(under.options.prefix) && !isUnread(under, path))
      gone.push(path);
  return gone;
};
