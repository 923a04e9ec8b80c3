import { mkdir, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { AttemptInput, TaskId } from '../../machines/task.ts';
import type { VerifyCommands } from '../engine/verify.ts';
import { readRegularAsync } from '../files/regular-file.ts';
import { reportMaxBytes } from '../gates/read-report.ts';
import type { OpenWorkspace } from '../workspace/port.ts';

/** Reports that verify commands wrote, copied out of the folders of attempts. */
export interface KeptReports {
  /** Null when the verify commands of the attempt wrote none there. */
  read(taskId: string, attempt: number, path: string): Promise<string | null>;
  /** Removes the reports of every attempt at the task. */
  remove(taskId: string): Promise<void>;
  /** Runs the commands, then copies the reports that they wrote. */
  keeping(verify: VerifyCommands): VerifyCommands;
}

export interface KeptReportsPorts {
  /** Outside the project. */
  readonly folder: string;
  /** Where reports of a task may be; empty for a task of no workflow. */
  readonly pathsOf: (taskId: TaskId) => Promise<readonly string[]>;
  readonly open: (attempt: AttemptInput) => Promise<Pick<OpenWorkspace, 'root'>>;
}

/** Times of files are coarser than the clock. */
const toleranceMs = 20;
const fileNameOf = (path: string): string => encodeURIComponent(path);

/** The text of a regular file inside the folder that was written since; else null. */
const readFresh = async (root: string, path: string, since: number): Promise<string | null> => {
  try {
    const real = await realpath(join(root, path));
    if (!real.startsWith(`${await realpath(root)}${sep}`)) return null;
    const { mtimeMs, size } = await stat(real);
    if (mtimeMs < since - toleranceMs || size > reportMaxBytes) return null;
    return await readRegularAsync(real, reportMaxBytes);
  } catch {
    return null;
  }
};

export const removeReports = async (folder: string, taskId: string): Promise<void> => {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(`${taskId}@`)))
    await rm(join(folder, name), { recursive: true, force: true });
};

export const createKeptReports = ({ folder, pathsOf, open }: KeptReportsPorts): KeptReports => {
  const folderOf = (taskId: string, attempt: number): string =>
    join(folder, `${taskId}@${attempt}`);

  const keep = async (attempt: AttemptInput, paths: readonly string[], since: number) => {
    const { root } = await open(attempt);
    const own = folderOf(attempt.taskId, attempt.attempt);
    await rm(own, { recursive: true, force: true });
    for (const path of paths) {
      const text = await readFresh(root, path, since);
      if (text === null) continue;
      await mkdir(own, { recursive: true, mode: 0o700 });
      await writeFile(join(own, fileNameOf(path)), text, { mode: 0o600 });
    }
  };

  return {
    read: (taskId, attempt, path) =>
      readFile(join(folderOf(taskId, attempt), fileNameOf(path)), 'utf8').catch(() => null),
    remove: (taskId) => removeReports(folder, taskId),
    keeping: (verify) => async (attempt, signal) => {
      const since = Date.now();
      const answer = await verify(attempt, signal);
      if (answer.failure !== null) return answer;
      const paths = await pathsOf(attempt.taskId);
      if (paths.length > 0) await keep(attempt, paths, since);
      return answer;
    },
  };
};
