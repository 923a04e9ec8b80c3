import { lstat, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../machines/message-of.ts';
import { hasCode } from '../../files/error-code.ts';
import { isAlive } from '../../process/pid.ts';
import { GitError } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { isPlain, requirePlainWay } from '../git/plain.ts';

/** @throws GitError unless the reflogs are plain files with one name */
export const requirePlainLogs = async ({ repository }: GitDirs, branch: string): Promise<void> => {
  const { gitDir, commonDir } = repository;
  await requirePlainWay(commonDir, `refs/heads/${branch}`);
  await requirePlainWay(commonDir, `logs/refs/heads/${branch}`);
  for (const path of [
    join(gitDir, 'logs', 'HEAD'),
    join(commonDir, 'logs', 'refs', 'heads', branch),
  ])
    if ((await isPlain(path, 'file')) && (await lstat(path)).nlink > 1)
      throw new GitError(
        `${path} is not a plain file or folder; nothing was read or written there`,
      );
};

const lockText = /^agent-server (\d+)$/;

/** The locks of this process: an old lock may name the same process id. */
const ownLocks = new Set<string>();

/** True for a lock of ours whose process is gone. */
const isDead = async (file: string): Promise<boolean> => {
  const isFile = await isPlain(file, 'file').catch(() => false);
  const holder = isFile ? lockText.exec(await readFile(file, 'utf8'))?.[1] : undefined;
  if (holder === undefined || ownLocks.has(file)) return false;
  return Number(holder) === process.pid || !isAlive(Number(holder));
};

export const removeDeadLock = async (file: string): Promise<void> => {
  if (await isDead(file)) await unlink(file);
};

/**
 * Holds a lock file of the user's git, as git does. @throws GitError when another process holds it
 */
const whileLocked = async <Result>(file: string, work: () => Promise<Result>): Promise<Result> => {
  const take = (): Promise<void> =>
    writeFile(file, `agent-server ${process.pid}`, { flag: 'wx', mode: 0o600 });
  try {
    await take().catch(async (error: unknown) => {
      if (!(await isDead(file))) throw error;
      await unlink(file);
      await take();
    });
  } catch (error) {
    throw new GitError(
      hasCode(error, 'EEXIST')
        ? `another git process uses the project, or left ${file} behind; try again when it has finished, and if no git runs there, remove it: rm ${file}`
        : `${file} cannot be written (${messageOf(error)}); give this user the right to write there`,
      { cause: error },
    );
  }
  ownLocks.add(file);
  try {
    return await work();
  } finally {
    await unlink(file).catch(() => {});
    ownLocks.delete(file);
  }
};

/** The locks of a merge: nobody else switches the branch or stages files. */
export const userLocks = (
  gitDir: string,
  index: string,
): readonly [head: string, index: string] => [join(gitDir, 'HEAD.lock'), `${index}.lock`];

export const withUserLocks = async <Result>(
  gitDir: string,
  index: string,
  work: () => Promise<Result>,
): Promise<Result> => {
  const [head, staged] = userLocks(gitDir, index);
  return whileLocked(head, () => whileLocked(staged, work));
};
