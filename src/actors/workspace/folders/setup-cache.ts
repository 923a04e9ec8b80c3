import { createHash, randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { readRegularAsync } from '../../files/regular-file.ts';
import { isPresent } from '../git/plain.ts';

const longestCopyMs = 10 * 60_000;

/**
 * Copies a file or a folder as it is, links as links, to a place where nothing is. By `cp`: Node's own
 * copy of 15,000 files takes ten times as long, beside all else that the server does.
 * @throws with what `cp` said, and when the signal is aborted
 */
export const copyTree = async (from: string, to: string, signal?: AbortSignal): Promise<void> => {
  signal?.throwIfAborted();
  const result = await execa('cp', ['-a', '--', from, to], {
    cancelSignal: signal,
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C' },
    extendEnv: false,
    stdin: 'ignore',
    stdout: 'ignore',
    reject: false,
    timeout: longestCopyMs,
    killSignal: 'SIGKILL',
    maxBuffer: 10_000,
  });
  signal?.throwIfAborted();
  if (!result.failed) return;
  const [said = ''] = result.stderr.split('\n');
  throw new Error(`${from} could not be copied: ${said || result.shortMessage}`);
};

/** Keeps what the setup of a worktree made, by the lockfiles that it was made from. */
export interface SetupCache {
  /** Null when there is no lockfile. */
  keyOf(root: string, commands: readonly string[]): Promise<string | null>;
  has(key: string): Promise<boolean>;
  /** Copies what is kept into a new worktree. @returns false when nothing is kept, or not all of it fits */
  take(key: string, root: string, paths: readonly string[]): Promise<boolean>;
  /** Keeps folders of a worktree in which no agent has worked. Something else is left out. */
  keep(key: string, root: string, paths: readonly string[]): Promise<void>;
}

const lockfiles = [
  'package-lock.json',
  'npm-shrinkwrap.json',
  'yarn.lock',
  'pnpm-lock.yaml',
  'bun.lock',
  'package.json',
  '.npmrc',
] as const;
const lockfileBytesAtMost = 64 * 1024 * 1024;
const keptAtMost = 3;

const isPlainFolder = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

/** Folders of the cache, the latest used first. */
const foldersIn = async (folder: string): Promise<readonly string[]> => {
  const names = await readdir(folder).catch(() => []);
  const found = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      return { path, at: (await stat(path).catch(() => null))?.mtimeMs ?? 0 };
    }),
  );
  return found.sort((one, other) => other.at - one.at).map(({ path }) => path);
};

export const createSetupCache = (folder: string): SetupCache => ({
  keyOf: async (root, commands) => {
    const texts = await Promise.all(
      lockfiles.map((name) =>
        readRegularAsync(join(root, name), lockfileBytesAtMost).catch(() => null),
      ),
    );
    if (texts.slice(0, -2).every((text) => text === null)) return null;
    const { platform, arch, versions } = process;
    const facts = JSON.stringify([commands, texts, platform, arch, versions.modules]);
    return createHash('sha256').update(facts).digest('hex').slice(0, 32);
  },
  has: (key) => isPresent(join(folder, key)),
  take: async (key, root, paths) => {
    const kept = join(folder, key);
    const wanted = [];
    for (const path of paths) if (await isPresent(join(kept, path))) wanted.push(path);
    if (wanted.length === 0) return false;
    // A commit may hold a link or files in that place: the setup decides what happens there.
    for (const path of wanted) if (await isPresent(join(root, path))) return false;
    try {
      for (const path of wanted) await copyTree(join(kept, path), join(root, path));
    } catch {
      for (const path of wanted) await rm(join(root, path), { recursive: true, force: true });
      return false;
    }
    await utimes(kept, new Date(), new Date()).catch(() => {});
    return true;
  },
  keep: async (key, root, paths) => {
    const kept = join(folder, key);
    if (await isPresent(kept)) return;
    const building = join(folder, `new-${randomUUID()}`);
    try {
      await mkdir(building, { recursive: true, mode: 0o700 });
      for (const path of paths)
        if (await isPlainFolder(join(root, path)))
          await copyTree(join(root, path), join(building, path));
      await rename(building, kept);
    } catch {
      // Another attempt was first, or the disk is full: the next worktree is set up again.
      await rm(building, { recursive: true, force: true }).catch(() => {});
    }
    for (const old of (await foldersIn(folder)).slice(keptAtMost))
      await rm(old, { recursive: true, force: true }).catch(() => {});
  },
});
