import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const pollMs = 20;
const killAfterMs = 2_000;
const giveUpAfterMs = 2_000;

const isMarked = (pid: string, mark: Buffer): boolean => {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`);
    // Of a process that has ended it is empty.
    return environment.includes(mark) && `\0${environment}`.includes(`\0${mark}\0`);
  } catch {
    return false;
  }
};

/**
 * The processes whose environment held this when they began: a command and all that it started, also what left its
 * process group, and what an earlier server left behind. Empty where there is no /proc.
 */
const marked = (variable: string, value: string): readonly number[] => {
  const mark = Buffer.from(`${variable}=${value}`);
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && isMarked(name, mark))
      .map(Number);
  } catch {
    return [];
  }
};

const signalAll = (pids: readonly number[], signal: NodeJS.Signals): void => {
  for (const pid of pids)
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended by itself.
    }
};

/**
 * Resolves when no process runs any more that began with this variable: SIGTERM, SIGKILL after 2 s, given up 2 s later.
 * @returns how many there were at first
 */
export const endMarked = async (variable: string, value: string): Promise<number> => {
  const found = marked(variable, value);
  const began = performance.now();
  for (let left = found, killed = false; left.length > 0; left = marked(variable, value)) {
    const waited = performance.now() - began;
    if (waited > killAfterMs + giveUpAfterMs) break;
    if (waited > killAfterMs) killed = true;
    signalAll(left, killed ? 'SIGKILL' : 'SIGTERM');
    await delay(pollMs);
  }
  return found.length;
};
