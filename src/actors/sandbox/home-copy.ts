import { rmSync } from 'node:fs';
import { cp, lstat, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';

/** Paths of the user's home that an assistant gets as copies, which end with it. */
export interface HomeCopy {
  /** Relative to the home folder. */
  readonly paths: readonly string[];
  /** Absolute; never copied, also where a path above is named: the server's own files. */
  readonly never: readonly string[];
}

const bytesAtMost = 64 * 1024 * 1024;
const entriesAtMost = 10_000;

/** Keys, logins and browsers of other programs. Below a named path they are left out. */
const namedOnly: ReadonlySet<string> = new Set([
  '.ssh',
  '.gnupg',
  '.password-store',
  'keyrings',
  '.pki',
  '.netrc',
  '.git-credentials',
  '.aws',
  '.azure',
  '.kube',
  '.docker',
  'gcloud',
  'gh',
  'glab-cli',
  'rclone',
  'sops',
  '.npmrc',
  '.pypirc',
  '.mozilla',
  'chromium',
  'google-chrome',
  'BraveSoftware',
]);
/** The name of every folder of ours, such as `~/.config/agent-task-server`. */
const ownName = 'agent-task-server';

const isIn = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === sep ? sep : `${folder}${sep}`);

const realOrSelf = (path: string): Promise<string> => realpath(path).catch(() => path);

/** Null where nothing is. @throws for a path that leads out of the home, or to our own files */
const sourceOf = async (
  home: string,
  path: string,
  never: readonly string[],
): Promise<string | null> => {
  const real = await realpath(join(home, path)).catch(() => null);
  if (real === null) return null;
  const named = `sandbox.home_paths: ~/${path}`;
  if (real === home || !isIn(real, home))
    throw new Error(`${named} leads to ${real}, which is not below your home folder; name another`);
  const isOurs = real.split(sep).includes(ownName) || never.some((each) => isIn(real, each));
  const inside = relative(home, real).split(sep);
  const unnamed = inside.find((part) => namedOnly.has(part) && !path.split(sep).includes(part));
  if (isOurs)
    throw new Error(`${named} belongs to this server, which no agent may read; remove it`);
  if (unnamed !== undefined)
    throw new Error(`${named} is a link to ${real}; name that path if an agent may read it`);
  return real;
};

const createBudget = () => {
  let bytes = 0;
  let entries = 0;
  return {
    /** @throws when all copies together are too large */
    take: (path: string, size: number): void => {
      bytes += size;
      entries += 1;
      if (bytes > bytesAtMost || entries > entriesAtMost)
        throw new Error(
          `sandbox.home_paths: with ~/${path} it is more than ${bytesAtMost / 1024 ** 2} MiB or ${entriesAtMost} files, which are copied at each start; name only what the assistant needs`,
        );
    },
  };
};

export interface CopiedHome {
  readonly folder: string;
  remove(): void;
}

/**
 * Copies the named paths into a new folder that only we can read. Links are copied as links: what
 * they point to is not. Sockets, pipes and devices are left out.
 *
 * @throws for more than 64 MiB or 10,000 files, and for a path that may not be copied
 */
type CopyHome = (home: string, copy: HomeCopy) => Promise<CopiedHome>;

/** `parent` is for these copies alone: what a server left there that was killed is removed. */
export const createHomeCopies = (parent: string): CopyHome => {
  let ready: Promise<unknown> | null = null;
  const prepare = async (): Promise<void> => {
    await rm(parent, { recursive: true, force: true });
    await mkdir(parent, { recursive: true, mode: 0o700 });
  };
  return async (given, { paths, never }) => {
    ready ??= prepare();
    await ready;
    const home = await realOrSelf(given);
    const hidden = [...never, ...(await Promise.all(never.map(realOrSelf)))];
    const folder = await mkdtemp(join(parent, 'home-'));
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    const budget = createBudget();
    try {
      for (const path of paths) {
        const source = await sourceOf(home, path, hidden);
        if (source === null) continue;
        const isWanted = async (from: string): Promise<boolean> => {
          const name = basename(from);
          if (from !== source && (name === ownName || namedOnly.has(name))) return false;
          if (hidden.some((each) => isIn(from, each))) return false;
          const stat = await lstat(from);
          if (!stat.isFile() && !stat.isDirectory() && !stat.isSymbolicLink()) return false;
          budget.take(path, stat.isFile() ? stat.size : 0);
          return true;
        };
        const target = join(folder, path);
        await mkdir(dirname(target), { recursive: true, mode: 0o700 });
        await cp(source, target, { recursive: true, verbatimSymlinks: true, filter: isWanted });
      }
      return { folder, remove };
    } catch (error) {
      remove();
      throw error;
    }
  };
};
