import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../machines/message-of.ts';
import { linkPlaces } from './link-places.ts';
import {
  createScanner,
  type ProtectedEntry,
  protectedEntryAt,
  type Scan,
} from './protected-scan.ts';
import { moveToQuarantine, nothingQuarantined, type Quarantined } from './quarantine.ts';

/** Protects a folder that agents share with the user, around one command. */
export interface FolderGuard {
  /** Absolute paths that the command may read but not change. */
  readonly readOnly: readonly string[];
  /**
   * Call it when no process of the command runs any more: moves away what it made under protected
   * names. Never rejects.
   */
  settle(): Promise<Quarantined>;
}

export interface SharedFolders {
  /** Refuses while something from an earlier command is left, after another try to move it away. */
  guard(root: string): Promise<FolderGuard | { readonly refusal: string }>;
  /** The reason why no command may run in a folder; null when one may. */
  unsettled(root: string): string | null;
}

interface Unsettled {
  readonly before: Scan;
  /** The entries; null when unknown: then everything new counts. */
  readonly ids: ReadonlySet<string> | null;
  readonly why: string;
}

const maxReadOnly = 500;
const keptScanners = 4;
const mostTold = 20;
const trackerName = '.beads';
const worktreeHint = 'set workspace.mode to worktree';

const isNotUtf8 = (path: string): boolean => {
  const bytes = Buffer.from(path, 'latin1');
  return !Buffer.from(bytes.toString()).equals(bytes);
};
const pathText = (path: string): string => Buffer.from(path, 'latin1').toString();

const isSameEntry = (
  one: ProtectedEntry | undefined,
  { kind, id, target }: ProtectedEntry,
): boolean => one?.kind === kind && (kind === 'link' ? one.target === target : one.id === id);

/**
 * The entries that a link with a protected name leads to; they are protected like the name. For a
 * link from before the command: up to the first entry that the command made.
 */
const entriesBehind = (
  root: string,
  link: ProtectedEntry,
  before: ReadonlyMap<string, ProtectedEntry> | null,
) => {
  if (link.kind !== 'link' || (before !== null && !isSameEntry(before.get(link.path), link)))
    return [];
  const found: ProtectedEntry[] = [];
  for (const path of linkPlaces(root, pathText(link.path))) {
    const entry = protectedEntryAt(root, path);
    if (entry === null) break;
    found.push(entry);
    if (before !== null && !isSameEntry(before.get(entry.path), entry)) break;
  }
  return found;
};

const byPath = (entries: readonly ProtectedEntry[]): ReadonlyMap<string, ProtectedEntry> =>
  new Map(entries.map((entry) => [entry.path, entry]));

const withLinked = (root: string, scan: Scan, before: Scan | null): Scan => {
  const known = before === null ? null : byPath(before.entries);
  const behind = scan.entries.flatMap((entry) => entriesBehind(root, entry, known));
  return { ...scan, entries: [...byPath([...behind, ...scan.entries]).values()] };
};

const readOnlyOf = (root: string, { kind, holder }: ProtectedEntry): readonly string[] => {
  if (kind === 'link') return [];
  const path = join(root, pathText(holder));
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() || stat?.isDirectory() ? [path] : [];
};

/** New or changed entries. A read-only entry can only have moved together with its folder. */
const madeBetween = (before: Scan, after: Scan): readonly ProtectedEntry[] => {
  const wasThere = new Map(before.entries.map((entry) => [entry.path, entry]));
  const wereHeld = new Set(
    before.entries.flatMap(({ kind, id }) => (kind === 'file' || kind === 'folder' ? [id] : [])),
  );
  const made = after.entries.filter(({ path, kind, id, target }) => {
    // A command cannot create it, since something is mounted there. The server can.
    if (path === trackerName && wasThere.get(path)?.kind !== 'link') return false;
    if (kind === 'file' || kind === 'folder') return !wereHeld.has(id);
    const same = wasThere.get(path);
    return same?.kind !== kind || same.target !== target || (kind === 'other' && same.id !== id);
  });
  // What is in one of them moves with it.
  const paths = new Set(made.map(({ path }) => path));
  const isBelow = (path: string): boolean =>
    path.split('/').some((_, end, parts) => end > 0 && paths.has(parts.slice(0, end).join('/')));
  return made.filter(({ path }) => !isBelow(path));
};

const bothQuarantined = (one: Quarantined, next: Quarantined): Quarantined => ({
  moved: [...one.moved, ...next.moved],
  left: [...one.left, ...next.left],
  folder: next.folder ?? one.folder,
});

const shortenedPath = (paths: readonly string[]): readonly string[] =>
  paths.length <= mostTold
    ? paths
    : [...paths.slice(0, mostTold), `and ${paths.length - mostTold} more`];

const told = (done: Quarantined, more: readonly string[]): Quarantined => ({
  moved: shortenedPath(done.moved),
  left: [...shortenedPath(done.left), ...more],
  folder: done.folder,
});

/** Scans of the roots in use, each quick after the first. */
const createScanners = (maxFolders: number) => {
  const scanners = new Map<string, ReturnType<typeof createScanner>>();
  return (root: string) => {
    const scanner = scanners.get(root) ?? createScanner(root, maxFolders);
    scanners.delete(root);
    scanners.set(root, scanner);
    for (const old of [...scanners.keys()].slice(0, -keptScanners)) scanners.delete(old);
    return async (before: Scan | null): Promise<Scan> =>
      withLinked(root, await scanner(before), before);
  };
};

const createMoving = (
  scannerOf: ReturnType<typeof createScanners>,
  quarantine: string,
  maxFolders: number,
) => {
  return async (
    root: string,
    before: Scan,
    ids: ReadonlySet<string> | null,
  ): Promise<Quarantined> => {
    const scan = scannerOf(root);
    let after = await scan(before);
    let done = nothingQuarantined;
    // Too many folders to check: every folder that the command made is moved.
    for (let hasMoved = true; hasMoved && !after.isWhole && after.newFolders.length > 0; ) {
      const now = await moveToQuarantine(root, after.newFolders, quarantine);
      done = bothQuarantined(done, now);
      hasMoved = now.moved.length > 0;
      after = await scan(before);
    }
    const made = madeBetween(before, after).filter(({ id }) => ids === null || ids.has(id));
    if (made.length > 0)
      done = bothQuarantined(
        done,
        await moveToQuarantine(
          root,
          made.map(({ path }) => path),
          quarantine,
        ),
      );
    return told(done, after.isWhole ? [] : [`only the first ${maxFolders} folders were checked`]);
  };
};

/**
 * Protects names where the agents' folder is the user's own. Nobody reviews a diff before programs
 * obey what is there, so all protected names count alike: existing ones are read-only, missing ones
 * must not be created.
 */
export const createSharedFolders = (quarantine: string, maxFolders = 50_000): SharedFolders => {
  const scannerOf = createScanners(maxFolders);
  const moveMade = createMoving(scannerOf, quarantine, maxFolders);
  const unsettled = new Map<string, Unsettled>();

  const madeSince = async (root: string, before: Scan): Promise<Unsettled['ids']> => {
    const now = await scannerOf(root)(before).catch(() => null);
    return now?.isWhole === true ? new Set(madeBetween(before, now).map(({ id }) => id)) : null;
  };

  const settle = async (
    root: string,
    before: Scan,
    ids: Unsettled['ids'],
  ): Promise<Quarantined> => {
    const done = await moveMade(root, before, ids).catch((error: unknown) => ({
      ...nothingQuarantined,
      left: [`not checked: ${messageOf(error)}`],
    }));
    unsettled.delete(root);
    if (done.left.length > 0) {
      const why =
        `a command made what other programs obey, and it could not be moved away: ${done.left.join(', ')}; ` +
        `remove it from ${root}; until then no command runs there`;
      unsettled.set(root, { before, ids: ids ?? (await madeSince(root, before)), why });
    }
    return done;
  };

  const guard: SharedFolders['guard'] = async (root) => {
    const earlier = unsettled.get(root);
    const late =
      earlier === undefined ? nothingQuarantined : await settle(root, earlier.before, earlier.ids);
    const why = unsettled.get(root)?.why;
    if (why !== undefined) return { refusal: why };
    const before = await scannerOf(root)(null).catch((error: unknown) => messageOf(error));
    if (typeof before === 'string') return { refusal: `${root} cannot be read: ${before}` };
    if (!before.isWhole)
      return {
        refusal: `${root} has more than ${maxFolders} folders, too many to protect; ${worktreeHint}`,
      };
    const odd = before.entries.find(({ holder }) => isNotUtf8(holder));
    if (odd !== undefined)
      return {
        refusal: `${pathText(odd.holder)} cannot be made read-only, its name is not UTF-8; rename it, or ${worktreeHint}`,
      };
    const readOnly = [...new Set(before.entries.flatMap((entry) => readOnlyOf(root, entry)))];
    if (readOnly.length > maxReadOnly)
      return {
        refusal: `${root} has more than ${maxReadOnly} files and folders that must be read-only; ${worktreeHint}`,
      };
    return {
      readOnly,
      settle: async () => bothQuarantined(late, await settle(root, before, null)),
    };
  };

  return { guard, unsettled: (root) => unsettled.get(root)?.why ?? null };
};
