import { readFileSync } from 'node:fs';
import { hasCode } from '../files/error-code.ts';

const threadsField = 17;

/**
 * Where the first process of a container does not reap, an ended process stays in the list and
 * signals still reach it.
 */
const hasEnded = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // The first thread may end before the others, which still hold the files.
    return /^[ZX]$/.test(fields[0] ?? '') && Number(fields[threadsField]) <= 1;
  } catch {
    return false;
  }
};

/** True also for another user's process, which this one may not signal. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !hasEnded(pid);
  } catch (error) {
    return hasCode(error, 'EPERM') && !hasEnded(pid);
  }
};
