import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Variable of every process of an attempt: the project, `/`, and the key of the attempt. */
export const attemptVariable = 'ATS_ATTEMPT';

const orphanPollMs = 20;
const orphanKillAfterMs = 2_000;
const orphanGiveUpAfterMs = 10_000;
const maxLooks = 20;

type Origin = 'marked' | 'unmarked' | 'unknown';

const kernelThread = 0x00200000;

/**
 * During execve an environment reads as empty; only /proc/<pid>/stat tells whether it stays empty.
 */
const hasNoEnvironment = (pid: string): boolean => {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [flags, begin, end] = [Number(fields[5]), fields[46], fields[47]];
  return (
    state === 'Z' || state === 'X' || (flags & kernelThread) !== 0 || (end !== '0' && begin === end)
  );
};

const originOfProcess = (pid: string, mark: Buffer): Origin => {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`);
    if (environment.length === 0) return hasNoEnvironment(pid) ? 'unmarked' : 'unknown';
    return environment.includes(mark) && `\0${environment}`.includes(`\0${mark}\0`)
      ? 'marked'
      : 'unmarked';
  } catch {
    return 'unmarked';
  }
};

const listProcesses = (): readonly string[] => {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
};

/**
 * Finds the processes that started with this variable: a command and all its descendants, also
 * those that left its process group or survived an earlier server. Repeats while it finds new ones:
 * a process that was read too early may have ended and left a child. Empty where there is no /proc.
 */
const findOrphans = async (variable: string, value: string): Promise<readonly number[]> => {
  const mark = Buffer.from(`${variable}=${value}`);
  const unmarked = new Set<string>();
  for (let look = 0; look < maxLooks; look += 1) {
    const fresh = listProcesses().filter((pid) => !unmarked.has(pid));
    if (fresh.length === 0) break;
    const found: number[] = [];
    for (const pid of fresh) {
      const standing = originOfProcess(pid, mark);
      if (standing === 'marked') found.push(Number(pid));
      if (standing === 'unmarked') unmarked.add(pid);
    }
    if (found.length > 0) return found;
    if (fresh.some((pid) => !unmarked.has(pid))) await delay(1);
  }
  return [];
};

const signalAll = (pids: readonly number[], signal: NodeJS.Signals): void => {
  for (const pid of pids)
    try {
      process.kill(pid, signal);
    } catch {
      // The process has ended.
    }
};

const orphansAfter = async (
  variable: string,
  value: string,
  patienceMs: number,
): Promise<readonly number[]> => {
  const deadline = performance.now() + patienceMs;
  let found = await findOrphans(variable, value);
  while (found.length > 0 && performance.now() < deadline) {
    await delay(orphanPollMs);
    found = await findOrphans(variable, value);
  }
  return found;
};

/**
 * Ends the processes that started with this variable: waits `patienceMs`, sends SIGTERM, after 2 s
 * SIGKILL, and gives up after 10 s more. @returns how many had to be ended
 */
export const endOrphans = async (
  variable: string,
  value: string,
  patienceMs = 0,
): Promise<number> => {
  const found = await orphansAfter(variable, value, patienceMs);
  const began = performance.now();
  for (
    let left = found, killed = false;
    left.length > 0;
    left = await findOrphans(variable, value)
  ) {
    const waited = performance.now() - began;
    if (waited > orphanKillAfterMs + orphanGiveUpAfterMs) break;
    if (waited > orphanKillAfterMs) killed = true;
    signalAll(left, killed ? 'SIGKILL' : 'SIGTERM');
    await delay(orphanPollMs);
  }
  return found.length;
};
