import { join } from 'node:path';
import { readRegularAsync } from '../../files/regular-file.ts';
import { commitOf } from '../git/commits.ts';
import { findRepository } from '../git/find-repository.ts';
import { type GitDirs, withGitDirs } from '../git/git-dirs.ts';
import type { Absent } from '../port.ts';
import { isGenerated } from '../saving/snapshot.ts';

const statusLimitMs = 5_000;
const statusArgs = [
  'status',
  '--porcelain',
  '-z',
  '--no-renames',
  '--ignored',
  '--ignore-submodules=all',
] as const;
const shownAtMost = 1_000;
const serverPaths = /(^|\/)(\.beads|\.agent|\.DS_Store)(\/|$)/;
const isOwnOrGenerated = (path: string): boolean => serverPaths.test(path) || isGenerated(path);

export const nothingAbsent: Absent = { uncommitted: [], ignored: [], install: null };

const installers = [
  ['package-lock.json', 'npm ci'],
  ['npm-shrinkwrap.json', 'npm ci'],
  ['yarn.lock', 'yarn install --frozen-lockfile'],
  ['pnpm-lock.yaml', 'pnpm install --frozen-lockfile'],
  ['bun.lock', 'bun install --frozen-lockfile'],
] as const;

const textAt = (path: string): Promise<string | null> =>
  readRegularAsync(path, 64 * 1024 * 1024).catch(() => null);

const hasDependencies = (manifest: string): boolean => {
  try {
    const json: unknown = JSON.parse(manifest);
    if (typeof json !== 'object' || json === null) return false;
    return ['dependencies', 'devDependencies'].some((key) => {
      const found: unknown = Reflect.get(json, key);
      return typeof found === 'object' && found !== null && Object.keys(found).length > 0;
    });
  } catch {
    return false;
  }
};

/** The command that installs what a JavaScript project depends on; null when it needs none. */
const installCommand = async (projectRoot: string): Promise<string | null> => {
  const manifest = await textAt(join(projectRoot, 'package.json'));
  if (manifest === null || !hasDependencies(manifest)) return null;
  for (const [lockfile, command] of installers)
    if ((await textAt(join(projectRoot, lockfile))) !== null) return command;
  return 'npm install';
};

type Listed = Omit<Absent, 'install'>;

/** A folder without git or without a commit is copied with its files. */
const listedByGit = async (
  dirs: GitDirs,
  signal: AbortSignal | undefined,
): Promise<Listed | null> => {
  const { git, repository } = dirs;
  if ((await commitOf(dirs, 'HEAD')) === null) return null;
  const env = {
    GIT_WORK_TREE: repository.top,
    GIT_INDEX_FILE: join(repository.gitDir, 'index'),
  };
  const { ok, stdout } = await git([...statusArgs], {
    cwd: repository.top,
    env,
    limitMs: statusLimitMs,
    signal,
  });
  const entries = ok ? stdout.toString().split('\0').filter(Boolean).slice(0, shownAtMost) : [];
  const named = (isIgnored: boolean): string[] =>
    entries
      .filter((entry) => entry.startsWith('!!') === isIgnored)
      .map((entry) => entry.slice(3))
      .filter((path) => !isOwnOrGenerated(path));
  return { uncommitted: named(false), ignored: named(true) };
};

/** Paths are relative to the repository; folders end in `/`. Never rejects, but when aborted. */
export const findAbsent = async (
  { program, projectRoot }: { readonly program: string; readonly projectRoot: string },
  uses: string,
  signal?: AbortSignal,
): Promise<Absent> => {
  const list = async (): Promise<Listed | null> => {
    const repository = await findRepository(program, projectRoot);
    return repository === null
      ? null
      : withGitDirs(program, repository, uses, (dirs) => listedByGit(dirs, signal));
  };
  const [listed, install] = await Promise.all([
    list().catch(() => null),
    installCommand(projectRoot),
  ]);
  signal?.throwIfAborted();
  return { ...nothingAbsent, ...listed, install };
};
