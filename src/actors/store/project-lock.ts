import Database from 'libsql';
import { StoreError } from './port.ts';

/** One server serves one project. The lock is the operating system's, so it dies with its process, however that ends. */
export interface ProjectLock {
  release(): void;
}

const isHeld = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');

/**
 * @returns null when another process holds the lock at this moment.
 * @throws StoreError when it cannot be taken for another reason, such as a full disk
 */
export const lockProject = (path: string): ProjectLock | null => {
  const db = new Database(path, { timeout: 0 });
  try {
    db.exec('begin exclusive');
  } catch (cause) {
    db.close();
    if (isHeld(cause)) return null;
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new StoreError(`the lock ${path} cannot be taken (${words}); is the disk full or read-only?`, { cause });
  }
  return { release: () => db.close() };
};
