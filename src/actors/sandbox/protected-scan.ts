import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  type Stats,
} from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { protectionOf } from '../files/protected-paths.ts';
import {
  look,
  openBelow,
  openFolder,
  openFolderIn,
  readLinkIn,
  within,
} from '../workspace/folders/handles.ts';

/** Paths are relative and latin1: one character per byte. */
export interface ProtectedEntry {
  readonly path: string;
  /**
   * The path to make read-only: the entry itself, or the folder that it turns into a repository.
   */
  readonly holder: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  /** Device and inode. */
  readonly id: string;
  readonly target: string | null;
}

export interface Scan {
  readonly entries: readonly ProtectedEntry[];
  /** False when there are more folders than the limit. */
  readonly isWhole: boolean;
  readonly folders: ReadonlySet<string>;
  /** The folders, with their state, that could not be listed. */
  readonly closed: ReadonlySet<string>;
  /** The topmost folders that the scan before the command did not see. */
  readonly newFolders: readonly string[];
}

interface ScannedFolder {
  readonly id: string;
  readonly changedAt: number;
  /** A change within one tick of the file system's clock would not show. */
  readonly isSettled: boolean;
  readonly isRepository: boolean;
  readonly named: readonly string[];
  readonly folders: Map<string, ScannedFolder | null>;
}

const scanDepthAtMost = 100;
const tickMs = 100;
/** Folders per slice; then other work of the thread has its turn. */
const sliceFolders = 256;
/** O_PATH, which Node does not name: opens a folder that cannot be listed. */
const pathOnly = 0x200000;

const idOf = ({ dev, ino }: Stats): string => `${dev}:${ino}`;
const entryKind = (stat: Stats): ProtectedEntry['kind'] => {
  if (stat.isSymbolicLink()) return 'link';
  if (stat.isDirectory()) return 'folder';
  return stat.isFile() ? 'file' : 'other';
};
/** A path of an entry, as text. */
export const pathText = (path: string): string => Buffer.from(path, 'latin1').toString();
const isProtected = (name: string): boolean =>
  protectionOf(Buffer.from(name, 'latin1').toString()) !== null;

/** Git takes a folder with these for a repository, whatever its name. */
const isRepository = (names: ReadonlySet<string>): boolean =>
  names.has('HEAD') && (names.has('commondir') || (names.has('objects') && names.has('refs')));

const listFolder = (
  folder: number,
  stat: Stats,
  before: ScannedFolder | null,
  isPackages: boolean,
): ScannedFolder => {
  const readAt = Date.now();
  const found = readdirSync(`/proc/self/fd/${folder}`, { withFileTypes: true, encoding: 'latin1' });
  const named = found.filter(({ name }) => isProtected(name)).map(({ name }) => name);
  // Installed packages are other people's code, whatever the names: only who works in there obeys
  // it.
  const folders = isPackages
    ? []
    : found.filter((entry) => entry.isDirectory() && !named.includes(entry.name));
  return {
    id: idOf(stat),
    changedAt: stat.ctimeMs,
    isSettled: readAt - stat.ctimeMs > tickMs,
    isRepository: isRepository(new Set(found.map(({ name }) => name))),
    named,
    folders: new Map(folders.map(({ name }) => [name, before?.folders.get(name) ?? null])),
  };
};

const isUnchanged = (known: ScannedFolder | null, stat: Stats): known is ScannedFolder =>
  known?.isSettled === true && known.id === idOf(stat) && known.changedAt === stat.ctimeMs;

const tryOpen = (parent: number, name: string): number | null => {
  try {
    return openFolderIn(parent, name);
  } catch {
    return null;
  }
};

/**
 * Opens a folder that a command made unreadable; null when it is gone or belongs to somebody else.
 */
const openUnlocked = (parent: number, name: string): number | null => {
  const { O_DIRECTORY, O_NOFOLLOW } = constants;
  try {
    const handle = openSync(within(parent, name), pathOnly | O_DIRECTORY | O_NOFOLLOW);
    try {
      chmodSync(`/proc/self/fd/${handle}`, (fstatSync(handle).mode & 0o777) | 0o700);
    } finally {
      closeSync(handle);
    }
    return openFolderIn(parent, name);
  } catch {
    return null;
  }
};

const openBelowAndClose = (top: number, path: string): number => {
  try {
    return openBelow(top, path);
  } finally {
    closeSync(top);
  }
};

export const protectedEntryAt = (root: string, path: string): ProtectedEntry | null => {
  const [parts, name] = [path.split('/').slice(0, -1), path.split('/').at(-1) ?? ''];
  const latin1 = (text: string): string => Buffer.from(text).toString('latin1');
  try {
    const top = openFolder(root);
    const folder = openBelowAndClose(top, latin1(parts.join('/')));
    try {
      const entries: ProtectedEntry[] = [];
      add({ entries }, folder, latin1(path), latin1(name), latin1(path));
      return entries[0] ?? null;
    } finally {
      closeSync(folder);
    }
  } catch {
    return null;
  }
};

interface ScanRun {
  readonly maxFolders: number;
  readonly before: Scan | null;
  readonly closed: Set<string>;
  readonly folders: Set<string>;
  readonly entries: ProtectedEntry[];
  readonly newFolders: string[];
  looked: number;
}

interface ScanPlace {
  readonly path: string;
  readonly depth: number;
  readonly isInNew: boolean;
}

const add = (
  { entries }: Pick<ScanRun, 'entries'>,
  parent: number,
  path: string,
  name: string,
  holder: string,
): void => {
  const stat = look(parent, name);
  if (stat === null) return;
  const kind = entryKind(stat);
  const target = kind === 'link' ? readLinkIn(parent, name).toString('latin1') : null;
  entries.push({ path, holder, kind, id: idOf(stat), target });
};

const isFull = ({ folders, maxFolders }: ScanRun): boolean => folders.size >= maxFolders;

const scanChild = async (
  run: ScanRun,
  parent: number,
  { path, depth, isInNew }: ScanPlace,
  name: string,
  before: ScannedFolder | null,
): Promise<ScannedFolder | null> => {
  const stat = look(parent, name);
  if (stat === null || !stat.isDirectory()) return null;
  run.looked += 1;
  const isNew = isInNew || run.before?.folders.has(idOf(stat)) === false;
  if (isNew && !isInNew) run.newFolders.push(path);
  // After a command, every folder of the earlier scan is visited, so each new folder is found; one
  // beyond the limit is not entered.
  if (isFull(run) && (isNew || run.before === null)) return null;
  run.folders.add(idOf(stat));
  if (
    isUnchanged(before, stat) &&
    before.folders.size + before.named.length === 0 &&
    !before.isRepository
  )
    return before;
  if (depth > scanDepthAtMost) {
    add(run, parent, path, name, path);
    return null;
  }
  const state = `${idOf(stat)}:${stat.ctimeMs}`;
  const folder =
    tryOpen(parent, name) ??
    (run.before?.closed.has(state) === false ? openUnlocked(parent, name) : null);
  if (folder === null) {
    run.closed.add(state);
    return null;
  }
  try {
    return await scanFolder(run, folder, { path, depth, isInNew: isNew }, before);
  } finally {
    closeSync(folder);
  }
};

const scanFolder = async (
  run: ScanRun,
  folder: number,
  { path, depth, isInNew }: ScanPlace,
  before: ScannedFolder | null,
): Promise<ScannedFolder> => {
  const stat = fstatSync(folder);
  const isPackages = path === 'node_modules' || path.endsWith('/node_modules');
  const now = isUnchanged(before, stat) ? before : listFolder(folder, stat, before, isPackages);
  const below = (name: string): string => (path === '' ? name : `${path}/${name}`);
  if (now.isRepository) add(run, folder, below('HEAD'), 'HEAD', path === '' ? 'HEAD' : path);
  if (now.isRepository && path !== '') return now;
  for (const name of now.named) add(run, folder, below(name), name, below(name));
  for (const [name, child] of now.folders) {
    if (run.before === null && isFull(run)) return now;
    if (run.looked % sliceFolders === sliceFolders - 1) await nextTurn();
    const place = { path: below(name), depth: depth + 1, isInNew };
    now.folders.set(name, await scanChild(run, folder, place, name, child));
  }
  return now;
};

/**
 * Finds protected names at every depth of a folder by open handles, following no link. Unchanged
 * folders are not read again. After a command it gets the scan before it, and makes folders
 * readable again that were readable then.
 */
export const createScanner = (
  root: string,
  maxFolders: number,
): ((before: Scan | null) => Promise<Scan>) => {
  let known: ScannedFolder | null = null;

  return async (before) => {
    const run: ScanRun = {
      maxFolders,
      before,
      closed: new Set(),
      folders: new Set(),
      entries: [],
      newFolders: [],
      looked: 0,
    };
    const folder = openFolder(root);
    try {
      known = await scanFolder(run, folder, { path: '', depth: 0, isInNew: false }, known);
    } finally {
      closeSync(folder);
    }
    const { entries, newFolders, folders, closed } = run;
    return { entries, newFolders, folders, closed, isWhole: !isFull(run) };
  };
};
