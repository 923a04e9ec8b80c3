import { mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { plainFolder } from '../folders/plain-folder.ts';
import { copyTree } from '../folders/setup-cache.ts';
import { GitError, requireGit } from '../git/git.ts';
import { byteForByte, configText, type GitDirs } from '../git/git-dirs.ts';
import { isPresent, plainText } from '../git/plain.ts';
import type { AttemptPlaces } from '../git/work-records.ts';
import { type IndexChange, indexRecords } from '../saving/snapshot-job.ts';
import type { Removals } from '../saving/snapshots.ts';

interface AgentGit {
  readonly head: string | null;
  readonly dir: string;
  readonly branch: string;
  readonly start: string;
  readonly index: string;
}

const settings = [
  ['core.bare', 'false'],
  ['core.logAllRefUpdates', 'true'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
] as const;

const usersBranch = /^ref: refs\/heads\/(\S+)/;

/**
 * Makes the git directory that an agent's own git uses for log, status, diff and commit. It has the
 * attempt's branch and the user's, reads the user's objects and knows no remote. Our git never reads it.
 */
const makeAgentGit = async (
  { repository, head: usersHead }: GitDirs,
  { head, dir, branch, start, index }: AgentGit,
): Promise<void> => {
  await rm(dir, { recursive: true, force: true });
  const ref = join(dir, 'refs', 'heads', branch);
  const users = usersBranch.exec(usersHead)?.[1];
  const [known, at] = users === undefined || head === null || users === branch ? [] : [users, head];
  await Promise.all([
    mkdir(dirname(ref), { recursive: true, mode: 0o700 }),
    mkdir(join(dir, 'objects', 'info'), { recursive: true, mode: 0o700 }),
    mkdir(join(dir, 'info'), { recursive: true, mode: 0o700 }),
  ]);
  const shallow = await plainText(join(repository.commonDir, 'shallow'));
  const excluded = (await plainText(join(repository.commonDir, 'info', 'exclude'))) ?? '';
  await Promise.all([
    writeFile(join(dir, 'HEAD'), `ref: refs/heads/${branch}\n`),
    writeFile(join(dir, 'config'), configText(repository, settings)),
    writeFile(ref, `${start}\n`),
    ...(known === undefined
      ? []
      : [writeFile(join(dir, 'packed-refs'), `${at} refs/heads/${known}\n`)]),
    writeFile(join(dir, 'info', 'attributes'), byteForByte),
    writeFile(join(dir, 'info', 'exclude'), excluded),
    writeFile(
      join(dir, 'objects', 'info', 'alternates'),
      `${join(repository.commonDir, 'objects')}\n`,
    ),
    readFile(index).then((bytes) => writeFile(join(dir, 'index'), bytes)),
    ...(shallow === null ? [] : [writeFile(join(dir, 'shallow'), shallow)]),
  ]);
};

/** Points the worktree at `dir`: an empty folder where a sandbox mounts it, else a `.git` file. */
const linkAgentGit = async (top: string, dir: string, isMounted: boolean): Promise<void> => {
  const at = join(top, '.git');
  await (isMounted ? mkdir(at, { recursive: true }) : writeFile(at, `gitdir: ${dir}\n`));
};

interface NewFolder {
  readonly start: string;
  /** The user's commit, by the name of their branch: for `git log main`; null: it is the start. */
  readonly head: string | null;
  /** The folder gets the files of this tree, as changes of `start`; null: those of `start`. */
  readonly carried: string | null;
  readonly branch: string;
  readonly instead: readonly IndexChange[];
  readonly projectRoot: string;
  /** Paths to copy that git does not track, relative to the project. */
  readonly copies: readonly string[];
  readonly isMounted: boolean;
  readonly removals: Removals;
  readonly signal: AbortSignal | undefined;
}

/** @returns what was not copied, in sentences for the agent */
const copyInto = async (
  folder: string,
  { projectRoot, copies, signal }: NewFolder,
): Promise<readonly string[]> => {
  const project = await realpath(projectRoot);
  const notes: string[] = [];
  for (const path of copies) {
    if (!(await isPresent(join(project, path)))) continue;
    const source = plainFolder(project, dirname(path), 'leave');
    const target = source === null ? null : plainFolder(folder, dirname(path), 'make');
    if (source === null || target === null) {
      notes.push(`${path} was not copied into your folder: a link or a file is on the way there.`);
      continue;
    }
    const to = join(target, basename(path));
    if (!(await isPresent(to))) await copyTree(join(source, basename(path)), to, signal);
  }
  return notes;
};

export const removeFolder = async (
  { top, agentGit, index }: AttemptPlaces,
  removals: Removals,
): Promise<void> => {
  for (const path of [top, agentGit]) await removals.giveUp(path);
  await rm(index, { force: true });
};

/**
 * Returns the folder of the project in a worktree. @throws GitError when a link or a file is in its
 * place or above it
 */
export const projectFolder = (top: string, prefix: string): string => {
  const folder = plainFolder(top, prefix, 'make');
  if (folder === join(top, prefix).replace(/\/$/, '')) return folder;
  throw new GitError(
    `${prefix.slice(0, -1)} is not a folder in the commit or the worktree of the project, though it is one on disk; commit it as a folder`,
  );
};

/**
 * Makes the folder of an attempt from nothing, so that no file of an agent is there while git
 * writes. @returns notes for the agent
 */
export const makeFolder = async (
  dirs: GitDirs,
  places: AttemptPlaces,
  wanted: NewFolder,
): Promise<readonly string[]> => {
  const { git, repository } = dirs;
  const { top, agentGit, index } = places;
  const { start, head, carried, branch, instead, removals, signal } = wanted;
  await removeFolder(places, removals);
  for (const folder of [top, dirname(index)]) await mkdir(folder, { recursive: true, mode: 0o700 });
  const where = { cwd: top, env: { GIT_WORK_TREE: top, GIT_INDEX_FILE: index }, signal };
  const putInstead = async (): Promise<void> => {
    if (instead.length === 0) return;
    const input = indexRecords(instead, repository.format);
    await requireGit(
      'its commit cannot be read',
      git(['update-index', '-z', '--index-info'], { ...where, input }),
    );
  };
  await requireGit('its commit cannot be read', git(['read-tree', carried ?? start], where));
  await putInstead();
  await requireGit(
    'its files cannot be written (git fsck tells which objects are missing; nothing is fetched for agents)',
    git(['checkout-index', '-a', '-u', '-q', '-f'], where),
  );
  if (carried !== null) {
    await requireGit('its commit cannot be read', git(['read-tree', '-m', start], where));
    await putInstead();
  }
  const notes = await copyInto(projectFolder(await realpath(top), repository.prefix), wanted);
  await makeAgentGit(dirs, { dir: agentGit, head, branch, start, index });
  await linkAgentGit(top, agentGit, wanted.isMounted);
  return notes;
};
