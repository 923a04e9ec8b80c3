import { readFileSync } from 'node:fs';

/** The index of a field of `/proc/<pid>/stat`, counted from the state. */
const threadsField = 17;

/** A container whose first process does not collect it keeps an ended process in the list, where signals still reach it. */
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

/** True also for a process of another user, which this one may not signal. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return !hasEnded(pid);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM' && !hasEnded(pid);
  }
};
