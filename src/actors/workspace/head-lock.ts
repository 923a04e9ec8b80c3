import { lstat, readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GitError } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { isPlain, requirePlainWay } from './plain.ts';

/** The logs of branches get a line: into plain files alone, which nobody else reads by another name. */
export const requirePlainLogs = async ({ repository }: GitDirs, branch: string): Promise<void> => {
  const { gitDir, commonDir } = repository;
  await requirePlainWay(commonDir, `refs/heads/${branch}`);
  await requirePlainWay(commonDir, `logs/refs/heads/${branch}`);
  for (const path of [join(gitDir, 'logs', 'HEAD'), join(commonDir, 'logs', 'refs', 'heads', branch)])
    if ((await isPlain(path, 'file')) && (await lstat(path)).nlink > 1)
      throw new GitError(`${path} is not a plain file or folder; nothing was read or written there`);
};

const ours = /^agent-server (\d+)$/;

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Nobody else switches the branch meanwhile. A lock of ours that a crash left is taken away. */
export const whileHeadIsLocked = async <Result>(gitDir: string, work: () => Promise<Result>): Promise<Result> => {
  const file = join(gitDir, 'HEAD.lock');
  const take = (): Promise<void> => writeFile(file, `agent-server ${process.pid}`, { flag: 'wx', mode: 0o600 });
  try {
    await take().catch(async (error: unknown) => {
      const holder = (await isPlain(file, 'file')) ? ours.exec(await readFile(file, 'utf8'))?.[1] : undefined;
      if (holder === undefined || isAlive(Number(holder))) throw error;
      await unlink(file);
      await take();
    });
  } catch (error) {
    throw new GitError(`${file} is held by another git; try again when it is done`, { cause: error });
  }
  try {
    return await work();
  } finally {
    await unlink(file).catch(() => {});
  }
};
