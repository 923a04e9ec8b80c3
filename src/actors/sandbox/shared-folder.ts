import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../machines/message-of.ts';
import { createScanner, type ProtectedEntry, type Scan } from './protected-scan.ts';
import { moveToQuarantine, nothingQuarantined, type Quarantined } from './quarantine.ts';

/** Protects a folder that agents share with the user. */
export interface FolderGuard {
  /** Absolute paths that the command may read and not change. */
  readonly readOnly: readonly string[];
  /** To be called when no process of the command runs any more: moves away what it made under protected names. Never rejects. */
  settle(): Promise<Quarantined>;
}

export type GuardFolder = (root: string) => Promise<FolderGuard | { readonly refusal: string }>;

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

/** The target of a link inside the root, where a command could change it. */
const linkTarget = (root: string, path: string): readonly string[] => {
  try {
    const target = realpathSync(join(root, path));
    return target.startsWith(`${root}/`) ? [target] : [];
  } catch {
    return [];
  }
};

const readOnlyOf = (root: string, { kind, holder }: ProtectedEntry): readonly string[] => {
  if (kind === 'link') return linkTarget(root, pathText(holder));
  const path = join(root, pathText(holder));
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() || stat?.isDirectory() ? [path] : [];
};

/** Entries that are new or changed. A read-only entry can only have moved together with its folder. */
const madeBetween = (before: Scan, after: Scan): readonly ProtectedEntry[] => {
  const wasThere = new Map(before.entries.map((entry) => [entry.path, entry]));
  const wereHeld = new Set(
    before.entries.flatMap(({ kind, id }) => (kind === 'file' || kind === 'folder' ? [id] : [])),
  );
  return after.entries.filter(({ path, kind, id, target }) => {
    // A command cannot make it: something is mounted there. The server can, meanwhile.
    if (path === trackerName && wasThere.get(path)?.kind !== 'link') return false;
    if (kind === 'file' || kind === 'folder') return !wereHeld.has(id);
    const same = wasThere.get(path);
    return same?.kind !== kind || same.target !== target || (kind === 'other' && same.id !== id);
  });
};

const joined = (one: Quarantined, next: Quarantined): Quarantined => ({
  moved: [...one.moved, ...next.moved],
  left: [...one.left, ...next.left],
  folder: next.folder ?? one.folder,
});

const shortened = (paths: readonly string[]): readonly string[] =>
  paths.length <= mostTold ? paths : [...paths.slice(0, mostTold), `and ${paths.length - mostTold} more`];

/**
 * Holds protected names where the folder of the agents is the user's own. Nobody sees there what they made before programs
 * obey it, so all protected names count alike: what is there is read-only, what is not there must not be made.
 */
export const createFolderGuard = (quarantine: string, maxFolders = 50_000): GuardFolder => {
  const scanners = new Map<string, ReturnType<typeof createScanner>>();
  const scannerOf = (root: string) => {
    const scanner = scanners.get(root) ?? createScanner(root, maxFolders);
    scanners.delete(root);
    scanners.set(root, scanner);
    for (const old of [...scanners.keys()].slice(0, -keptScanners)) scanners.delete(old);
    return scanner;
  };

  return async (root) => {
    const scan = scannerOf(root);
    const before = await scan(null).catch((error: unknown) => messageOf(error));
    if (typeof before === 'string') return { refusal: `${root} cannot be looked through: ${before}` };
    if (!before.isWhole)
      return { refusal: `${root} has more than ${maxFolders} folders, too many to be watched; ${worktreeHint}` };
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

    const settleNow = async (): Promise<Quarantined> => {
      let after = await scan(before);
      let done = nothingQuarantined;
      // Too many to be looked through: every folder that the command made goes, whatever is in it.
      for (let hasMoved = true; hasMoved && !after.isWhole && after.newFolders.length > 0; ) {
        const now = await moveToQuarantine(root, after.newFolders, quarantine);
        done = joined(done, now);
        hasMoved = now.moved.length > 0;
        after = await scan(before);
      }
      const made = madeBetween(before, after).map(({ path }) => path);
      if (made.length > 0) done = joined(done, await moveToQuarantine(root, made, quarantine));
      const tooMany = after.isWhole ? [] : [`what is in the folders after the first ${maxFolders} was not looked at`];
      return { moved: shortened(done.moved), left: [...shortened(done.left), ...tooMany], folder: done.folder };
    };
    return {
      readOnly,
      settle: () =>
        settleNow().catch((error: unknown) => ({
          ...nothingQuarantined,
          left: [`not looked at: ${messageOf(error)}`],
        })),
    };
  };
};
