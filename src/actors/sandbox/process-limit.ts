import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** cgroup version 1, then version 2. */
const hierarchies = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'];
const prefix = 'agent-commands-';

const leftBehind = new Set<string>();
let groupsMade = 0;

const removeGroup = (folder: string): void => {
  try {
    rmdirSync(folder);
    leftBehind.delete(folder);
  } catch {
    leftBehind.add(folder);
  }
};

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Removes groups of this server and of dead ones, never one that a process may still enter. */
const removeStale = (hierarchy: string): void => {
  const ofOthers = readdirSync(hierarchy).filter(
    (name) =>
      name.startsWith(prefix) && !isRunning(Number(name.slice(prefix.length).split('-')[0])),
  );
  for (const folder of [...leftBehind, ...ofOthers.map((name) => join(hierarchy, name))])
    removeGroup(folder);
};

const createGroupIn = (hierarchy: string, most: number): string | null => {
  groupsMade += 1;
  const folder = join(hierarchy, `${prefix}${process.pid}-${groupsMade}`);
  try {
    removeStale(hierarchy);
    mkdirSync(folder);
  } catch {
    return null;
  }
  try {
    writeFileSync(join(folder, 'pids.max'), String(most), { flag: 'r+' });
    return folder;
  } catch {
    removeGroup(folder);
    return null;
  }
};

export interface ProcessLimit {
  /** Puts a process, and all that it starts from then on, into the limit. @throws a system error */
  readonly enter: (pid: number) => void;
  readonly release: () => void;
}

const processesOf = (folder: string): string => join(folder, 'cgroup.procs');

/** Some hosts let a process make a group but not enter it. */
const canEnter = (folder: string): boolean =>
  spawnSync('/bin/sh', ['-c', 'echo $$ > "$0"', processesOf(folder)], {
    stdio: 'ignore',
    timeout: 5_000,
  }).status === 0;

/** Whether a process could enter a group, by hierarchy. */
const tried = new Map<string, boolean>();

const isUsable = (hierarchy: string, folder: string): boolean => {
  const known = tried.get(hierarchy) ?? canEnter(folder);
  tried.set(hierarchy, known);
  return known;
};

/**
 * Limits the processes and threads of one command; null where that is not possible. It needs root,
 * and root needs it: the kernel never applies RLIMIT_NPROC to root, in any namespace.
 */
export const limitProcesses = (most: number): ProcessLimit | null => {
  for (const hierarchy of hierarchies) {
    const folder = createGroupIn(hierarchy, most);
    if (folder === null) continue;
    if (isUsable(hierarchy, folder))
      return {
        enter: (pid) => writeFileSync(processesOf(folder), String(pid), { flag: 'r+' }),
        release: () => removeGroup(folder),
      };
    removeGroup(folder);
  }
  return null;
};
