import { readFileSync } from 'node:fs';

/** Whether a process has this id; one of another user, which may not be signalled, counts. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
};

/**
 * When a process began, in the kernel's ticks, so that a process id that was used again is not taken for its
 * predecessor; empty where that cannot be known or the process is gone.
 */
export const beginningOf = (pid: number): string => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
};
