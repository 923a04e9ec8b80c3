import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxRequest } from './port.ts';

/** Folders of cgroup version 1, then of version 2. */
const hierarchies = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'];
const prefix = 'agent-commands-';

/** Groups that could not be removed yet, because their last process was ending. */
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

/** Removes groups left by this server or by dead ones, never one that a process may still enter. */
const removeStale = (hierarchy: string): void => {
  const ofOthers = readdirSync(hierarchy).filter(
    (name) => name.startsWith(prefix) && !isRunning(Number(name.slice(prefix.length).split('-')[0])),
  );
  for (const folder of [...leftBehind, ...ofOthers.map((name) => join(hierarchy, name))]) removeGroup(folder);
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
  /** The same command, within the limit from its beginning; not run when it cannot be. */
  readonly within: (argv: SandboxRequest['argv']) => SandboxRequest['argv'];
  /** To be called when the command has ended. */
  readonly release: () => void;
}

const enterAndRun = (folder: string, argv: SandboxRequest['argv']): SandboxRequest['argv'] => [
  ...(['/bin/sh', '-c', 'echo $$ > "$0" && exec "$@"', join(folder, 'cgroup.procs')] as const),
  ...argv,
];

/** Some hosts let a process make a group but not enter it. */
const canEnter = (folder: string): boolean => {
  const [program, ...args] = enterAndRun(folder, ['true']);
  return spawnSync(program, args, { stdio: 'ignore', timeout: 5_000 }).status === 0;
};

/** The hierarchies that were tried, and whether a process could enter a group of theirs. */
const tried = new Map<string, boolean>();

const isUsable = (hierarchy: string, folder: string): boolean => {
  const known = tried.get(hierarchy) ?? canEnter(folder);
  tried.set(hierarchy, known);
  return known;
};

/**
 * A limit for the processes and threads of one command, which needs root, or null where it cannot be set. Root needs it: the
 * kernel does not hold root to RLIMIT_NPROC, whatever namespaces it is in.
 */
export const limitProcesses = (most: number): ProcessLimit | null => {
  for (const hierarchy of hierarchies) {
    const folder = createGroupIn(hierarchy, most);
    if (folder === null) continue;
    if (isUsable(hierarchy, folder))
      return { within: (argv) => enterAndRun(folder, argv), release: () => removeGroup(folder) };
    removeGroup(folder);
  }
  return null;
};
