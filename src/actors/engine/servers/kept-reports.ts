import { mkdir, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { AttemptInput, TaskId } from '../../../machines/task.ts';
import { hasCode } from '../../files/error-code.ts';
import { readRegularAsync } from '../../files/regular-file.ts';
import { reportMaxBytes } from '../../gates/read-report.ts';
import type { WatchReports } from '../attempts/verify.ts';

/** Reports that verify commands wrote, copied out of the folders of attempts. */
export interface KeptReports {
  /** Null when the verify commands of the attempt wrote none there. */
  read(taskId: string, attempt: number, path: string): Promise<string | null>;
  /** Removes the reports of every attempt at the task. */
  remove(taskId: string): Promise<void>;
  readonly watch: WatchReports;
}

export interface KeptReportsPorts {
  /** Outside the project. */
  readonly folder: string;
  /** Where reports of a task may be; empty for a task of no workflow. */
  readonly pathsOf: (taskId: TaskId) => Promise<readonly string[]>;
}

const fileNameOf = (path: string): string => encodeURIComponent(path);

/** The file that a path leads to; null when that is outside the folder. */
const fileInside = async (root: string, path: string): Promise<string | null> => {
  const real = await realpath(join(root, path));
  return real.startsWith(`${await realpath(root)}${sep}`) ? real : null;
};

/**
 * Differs after a program wrote the file. A time alone says nothing: whoever wrote the file before
 * can have set it, also to one that is yet to come. Null when it cannot be told.
 */
const fingerprintOf = async (root: string, path: string): Promise<string | null> => {
  try {
    const real = await fileInside(root, path);
    if (real === null) return 'outside';
    const { dev, ino, size, mtimeNs } = await stat(real, { bigint: true });
    return [dev, ino, size, mtimeNs].join();
  } catch (error) {
    return hasCode(error, 'ENOENT', 'ENOTDIR') ? 'absent' : null;
  }
};

/** The text of a regular file inside the folder; else null. */
const readInside = async (root: string, path: string): Promise<string | null> => {
  try {
    const real = await fileInside(root, path);
    return real === null ? null : await readRegularAsync(real, reportMaxBytes);
  } catch {
    return null;
  }
};

export const removeReports = async (folder: string, taskId: string): Promise<void> => {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(`${taskId}@`)))
    await rm(join(folder, name), { recursive: true, force: true });
};

export const createKeptReports = ({ folder, pathsOf }: KeptReportsPorts): KeptReports => {
  const folderOf = (taskId: string, attempt: number): string =>
    join(folder, `${taskId}@${attempt}`);

  const keep = async (own: string, root: string, path: string): Promise<void> => {
    const text = await readInside(root, path);
    if (text === null) return;
    await mkdir(own, { recursive: true, mode: 0o700 });
    await writeFile(join(own, fileNameOf(path)), text, { mode: 0o600 });
  };

  return {
    read: (taskId, attempt, path) =>
      readFile(join(folderOf(taskId, attempt), fileNameOf(path)), 'utf8').catch(() => null),
    remove: (taskId) => removeReports(folder, taskId),
    watch: async ({ taskId, attempt }: AttemptInput, root) => {
      const own = folderOf(taskId, attempt);
      await rm(own, { recursive: true, force: true });
      const paths = await pathsOf(taskId);
      return async (run) => {
        const before = await Promise.all(paths.map((path) => fingerprintOf(root, path)));
        const result = await run();
        for (const [at, path] of paths.entries()) {
          const was = before[at] ?? null;
          const now = await fingerprintOf(root, path);
          if (was !== null && now !== null && now !== was) await keep(own, root, path);
        }
        return result;
      };
    },
  };
};
