import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { hasCode } from '../files/error-code.ts';

const groupPollMs = 20;
const killAfterMs = 2_000;
const giveUpAfterMs = 2_000;

/** Signals every process of the group; 0 only checks. False when the group does not exist. */
export const signalGroup = (group: number, signal: NodeJS.Signals | 0): boolean => {
  if (group <= 1) return false;
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
};

const runsInGroup = async (pid: string, group: number): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [state, , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return processGroup === String(group) && state !== 'Z' && state !== 'X';
};

/**
 * A zombie answers to signal 0. In a container whose first process reaps late or never it stays,
 * but it must not count as running.
 */
const onlyZombiesLeft = async (group: number): Promise<boolean> => {
  const names = await readdir('/proc').catch(() => null);
  if (names === null || process.platform !== 'linux') return false;
  for (const name of names) {
    if (/^\d+$/.test(name) && (await runsInGroup(name, group))) return false;
  }
  return true;
};

export const groupRuns = async (group: number): Promise<boolean> =>
  signalGroup(group, 0) && !(await onlyZombiesLeft(group));

const groupEndsWithin = async (group: number, ms: number): Promise<boolean> => {
  const deadline = performance.now() + ms;
  while (await groupRuns(group)) {
    if (performance.now() >= deadline) return false;
    await delay(groupPollMs);
  }
  return true;
};

/**
 * Ends a process group: waits `patienceMs`, sends SIGTERM, after 2 s SIGKILL, and gives up after 2
 * s more (uninterruptible sleep). `byItself`: nothing had to be ended.
 */
export const endGroup = async (
  group: number,
  patienceMs: number,
): Promise<{ readonly byItself: boolean }> => {
  if (await groupEndsWithin(group, patienceMs)) return { byItself: true };
  signalGroup(group, 'SIGTERM');
  if (await groupEndsWithin(group, killAfterMs)) return { byItself: false };
  signalGroup(group, 'SIGKILL');
  await groupEndsWithin(group, giveUpAfterMs);
  return { byItself: false };
};

const boundGroups = new Set<number>();
const killBoundGroups = (): void => {
  for (const group of boundGroups) signalGroup(group, 'SIGKILL');
};

/**
 * Kills the group if this process exits before the returned function is called. Not when this
 * process is killed: then a sandbox ends its command, and the next server ends the others.
 */
export const bindToThisProcess = (group: number): (() => void) => {
  if (boundGroups.size === 0) process.on('exit', killBoundGroups);
  boundGroups.add(group);
  return () => {
    boundGroups.delete(group);
    if (boundGroups.size === 0) process.off('exit', killBoundGroups);
  };
};
