import { readFileSync } from 'node:fs';

/** A container whose first process does not collect it keeps an ended process in the list, where signals still reach it. */
const hasEnded = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return /^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
  } catch {
    return false;
  }
};

/** True also for a process of another user, which this one may not signal. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !hasEnded(pid);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM' && !hasEnded(pid);
  }
};
