import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../machines/message-of.ts';
import { linkPlaces } from '../files/link-places.ts';
import { endCommand } from '../process/run-command.ts';
import {
  type CommandRecord,
  type CommandRecords,
  createCommandRecords,
  noCommandRecords,
} from './command-records.ts';
import {
  createScanner,
  type ProtectedEntry,
  pathText,
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

/** Paths that a command made, and that its server did not live to move away. */
export interface Interrupted extends Quarantined {
  /** Null when it is not known. */
  readonly root: string | null;
  /** As `attemptVariable` names it; null when it is not known. */
  readonly attempt: string | null;
}

export interface SharedFolders {
  /**
   * Refuses while something from an earlier command is left, after another try to move it away. The
   * mark is that of the processes that the command will have, and `attempt` what `attemptVariable` is.
   */
  guard(
    root: string,
    mark: string,
    attempt?: string,
  ): Promise<FolderGuard | { readonly refusal: string }>;
  /** The reason why no command may run in a folder; null when one may. */
  unsettled(root: string): string | null;
  /** Settles what commands of an earlier server left. Call it before anything runs. */
  settleInterrupted(): Promise<readonly Interrupted[]>;
}

export interface SharedFolderOptions {
  readonly quarantine: string;
  /**
   * A private folder for what was there before each command; null where the folders of the commands
   * are no user's.
   */
  readonly records: string | null;
  readonly maxFolders?: number;
}

interface Unsettled {
  /** Null when its record cannot be read: then it may be any folder. */
  readonly root: string | null;
  /** Null when it cannot be used. */
  readonly record: CommandRecord | null;
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

/** Moves away what commands made, and keeps the record of each until everything is moved. */
const createSettling = (
  records: CommandRecords,
  { quarantine, maxFolders }: Required<Omit<SharedFolderOptions, 'records'>>,
) => {
  const scannerOf = createScanners(maxFolders);
  const moveMade = createMoving(scannerOf, quarantine, maxFolders);
  const unsettled = new Map<string, Unsettled>();

  const madeSince = async (root: string, before: Scan): Promise<CommandRecord['made']> => {
    const now = await scannerOf(root)(before).catch(() => null);
    return now?.isWhole === true ? new Set(madeBetween(before, now).map(({ id }) => id)) : null;
  };

  const forget = (mark: string): readonly string[] => {
    try {
      records.forget(mark);
      unsettled.delete(mark);
      return [];
    } catch (error) {
      return [`${records.file(mark)} (${messageOf(error)})`];
    }
  };

  const settle = async (mark: string, record: CommandRecord): Promise<Quarantined> => {
    const { root, before, made } = record;
    const done = await moveMade(root, before, made).catch((error: unknown) => ({
      ...nothingQuarantined,
      left: [`not checked: ${messageOf(error)}`],
    }));
    const left = done.left.length > 0 ? done.left : forget(mark);
    if (left.length === 0) return done;
    const why =
      `a command made what other programs obey, and it could not be moved away: ${left.join(', ')}; ` +
      `remove it from ${root}; until then no command runs there`;
    const kept = { ...record, made: made ?? (await madeSince(root, before)) };
    unsettled.set(mark, { root, record: kept, why });
    // Where this cannot be written, the earlier record says enough, though more.
    await records.keep(mark, kept).catch(() => {});
    return { ...done, left };
  };

  const cannotSettle = (mark: string, root: string | null, fault: string): Quarantined => {
    const file = records.file(mark);
    const why =
      `it is not known what a command made before the server ended, for ${fault}; ` +
      `remove what you did not make${root === null ? '' : ` from ${root}`}, then ${file}; until then no command runs`;
    unsettled.set(mark, { root, record: null, why });
    return { ...nothingQuarantined, left: [why] };
  };

  return {
    scannerOf,
    settle,
    unsettledIn: (root: string): readonly Unsettled[] =>
      [...unsettled.values()].filter((each) => each.root === root || each.root === null),
    settleAgain: async (root: string): Promise<Quarantined> => {
      let done = nothingQuarantined;
      for (const [mark, { root: its, record }] of unsettled) {
        if (record !== null && its === root)
          done = bothQuarantined(done, await settle(mark, record));
        if (record === null && !records.has(mark)) unsettled.delete(mark);
      }
      return done;
    },
    settleInterrupted: async (): Promise<readonly Interrupted[]> => {
      const found: Interrupted[] = [];
      for (const { mark, record } of records.readAll()) {
        await endCommand(mark);
        const [root, today] =
          'fault' in record ? [null, record] : [record.root, recordToday(record)];
        const attempt = 'fault' in record ? null : (record.attempt ?? null);
        if (today === 'gone') forget(mark);
        else {
          const isFault = 'fault' in today;
          const done = isFault ? cannotSettle(mark, root, today.fault) : await settle(mark, today);
          found.push({ root, attempt, ...done });
        }
      }
      return found;
    },
  };
};

const asGuardable = (
  root: string,
  before: Scan,
  maxFolders: number,
): Pick<FolderGuard, 'readOnly'> | { readonly refusal: string } => {
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
  return readOnly.length > maxReadOnly
    ? {
        refusal: `${root} has more than ${maxReadOnly} files and folders that must be read-only; ${worktreeHint}`,
      }
    : { readOnly };
};

/**
 * Protects names where the agents' folder is the user's own. Nobody reviews a diff before programs
 * obey what is there, so all protected names count alike: existing ones are read-only, missing ones
 * must not be created. What was there is on disk before the command begins, for the server may not
 * live to see its end.
 */
export const createSharedFolders = ({
  quarantine,
  records: recordsFolder,
  maxFolders = 50_000,
}: SharedFolderOptions): SharedFolders => {
  const records = recordsFolder === null ? noCommandRecords : createCommandRecords(recordsFolder);
  const settling = createSettling(records, { quarantine, maxFolders });
  const { scannerOf, settle, unsettledIn, settleAgain } = settling;
  /** Moved between commands; the next command of the folder reports it. */
  const untold = new Map<string, Quarantined>();
  const whyUnsettled = (root: string): string | null => unsettledIn(root)[0]?.why ?? null;

  const guard: SharedFolders['guard'] = async (root, mark, attempt) => {
    const late = bothQuarantined(untold.get(root) ?? nothingQuarantined, await settleAgain(root));
    untold.set(root, late);
    const why = whyUnsettled(root);
    if (why !== null) return { refusal: why };
    const before = await scannerOf(root)(null).catch((error: unknown) => messageOf(error));
    const rootId = rootIdOf(root);
    if (typeof before === 'string' || rootId === null)
      return { refusal: `${root} cannot be read: ${before}` };
    const guardable = asGuardable(root, before, maxFolders);
    if ('refusal' in guardable) return guardable;
    const record = {
      root,
      rootId,
      before,
      made: null,
      attempt,
    };
    try {
      await records.keep(mark, record);
    } catch (error) {
      return { refusal: `${recordsFolder} cannot be written: ${messageOf(error)}` };
    }
    untold.delete(root);
    return {
      ...guardable,
      settle: async () => bothQuarantined(late, await settle(mark, record)),
    };
  };

  return {
    guard,
    unsettled: whyUnsettled,
    settleInterrupted: async () => {
      const found = await settling.settleInterrupted();
      for (const { root, attempt: _, ...done } of found)
        if (root !== null)
          untold.set(root, bothQuarantined(untold.get(root) ?? nothingQuarantined, done));
      return found.filter(({ moved, left }) => moved.length + left.length > 0);
    },
  };
};

const deviceOf = (id: string): string => id.slice(0, id.indexOf(':'));
const withoutDevice = (id: string): string => id.slice(id.indexOf(':'));

const hasNumber = ({ kind }: ProtectedEntry): boolean => kind === 'file' || kind === 'folder';

const rootIdOf = (root: string): string | null => {
  const stat = lstatSync(root, { throwIfNoEntry: false });
  return stat?.isDirectory() ? `${stat.dev}:${stat.ino}` : null;
};

/**
 * The record with the device numbers of today, which may differ after a restart of the machine.
 * `gone`: another folder is there now.
 */
const recordToday = (
  record: CommandRecord,
): CommandRecord | 'gone' | { readonly fault: string } => {
  const { root, rootId, before, made } = record;
  const now = rootIdOf(root);
  if (now === null || withoutDevice(now) !== withoutDevice(rootId)) return 'gone';
  if (now === rootId) return record;
  const devices = new Map([[deviceOf(rootId), deviceOf(now)]]);
  let [found, same] = [0, 0];
  for (const entry of before.entries.filter(hasNumber)) {
    const today = protectedEntryAt(root, pathText(entry.path));
    if (today?.kind !== entry.kind) continue;
    found += 1;
    if (withoutDevice(today.id) !== withoutDevice(entry.id)) continue;
    same += 1;
    devices.set(deviceOf(entry.id), deviceOf(today.id));
  }
  if (found > 0 && same === 0) return { fault: 'its files have other inode numbers now' };
  const renamed = (id: string): string =>
    `${devices.get(deviceOf(id)) ?? deviceOf(id)}${withoutDevice(id)}`;
  const all = (ids: ReadonlySet<string>): ReadonlySet<string> => new Set([...ids].map(renamed));
  return {
    root,
    rootId: now,
    before: {
      ...before,
      entries: before.entries.map((entry) => ({ ...entry, id: renamed(entry.id) })),
      folders: all(before.folders),
      closed: all(before.closed),
    },
    made: made === null ? null : all(made),
  };
};
