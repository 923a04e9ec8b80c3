import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const run = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args).status === 0;

/**
 * A small file system of its own at a folder until the test is over, when `release` has let go of
 * it; null where that is not allowed.
 */
export const mountSmallDisk = (folder: string, size: string, release: () => Promise<void>) => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (!run('mount', '-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'tmpfs', folder)) return null;
  onTestFinished(async () => {
    run('mount', '-o', 'remount,rw', folder);
    await release();
    run('umount', '-l', folder);
  });
  const ballast = join(folder, 'ballast');
  return {
    /** Takes all the room that there is. */
    fill: (): void => {
      for (let bytes = 1024 * 1024; bytes >= 64; bytes /= 2)
        for (let full = false; !full; )
          try {
            appendFileSync(ballast, Buffer.alloc(bytes));
          } catch {
            full = true;
          }
    },
    resize: (to: string): boolean => run('mount', '-o', `remount,size=${to}`, folder),
    empty: (): void => rmSync(ballast, { force: true }),
    /** @returns whether it could be done: not while somebody has a file open there to write. */
    setReadOnly: (on: boolean): boolean =>
      run('mount', '-o', `remount,${on ? 'ro' : 'rw'}`, folder),
  };
};
