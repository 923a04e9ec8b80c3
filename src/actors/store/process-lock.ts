import { lstatSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'libsql';
import { messageOf } from '../../machines/message-of.ts';
import { UnsafeFileError } from '../files/regular-file.ts';
import { StoreError } from './port.ts';

/** A lock of the operating system: it dies with its process. The empty file stays. */
export interface ProcessLock {
  release(): void;
}

/** Another process held the lock for the whole wait. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
}

const isHeld = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');

/**
 * SQLite follows links. The file is not opened to check: closing it would drop a lock that this
 * process holds.
 */
const requireRegular = (path: string): void => {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile())
    throw new UnsafeFileError(`${path} is not a regular file`, 'remove it');
};

/**
 * @returns null when the lock is held. @throws StoreError when it cannot be taken for another
 * reason, such as a full disk
 */
export const takeLock = (path: string): ProcessLock | null => {
  requireRegular(path);
  const db = new Database(path, { timeout: 0 });
  try {
    db.exec('begin exclusive');
  } catch (cause) {
    db.close();
    if (isHeld(cause)) return null;
    throw new StoreError(
      `the lock ${path} cannot be taken (${messageOf(cause)}); is the disk full or read-only?`,
      {
        cause,
      },
    );
  }
  return { release: () => db.close() };
};

const lockPauseAtMostMs = 50;

const waitForLock = async (path: string, waitMs: number): Promise<ProcessLock> => {
  const deadline = performance.now() + waitMs;
  for (let pause = 1; ; pause = Math.min(pause * 2, lockPauseAtMostMs)) {
    const lock = takeLock(path);
    if (lock !== null) return lock;
    if (performance.now() >= deadline)
      throw new LockedError(`another process has held the lock ${path} for ${waitMs / 1000} s`);
    await delay(pause * (0.5 + Math.random()));
  }
};

/** Waits up to ten seconds for the lock. @throws LockedError after that */
export const withLock = async <Result>(
  path: string,
  work: () => Promise<Result>,
  { waitMs = 10_000 }: { readonly waitMs?: number } = {},
): Promise<Result> => {
  const lock = await waitForLock(path, waitMs);
  try {
    return await work();
  } finally {
    lock.release();
  }
};
