import Database from 'libsql';

/** One server serves one project. The lock is the operating system's, so it dies with its process, however that ends. */
export interface ProjectLock {
  release(): void;
}

/** @returns null when another process holds the lock and keeps it for `waitMs`. */
export const lockProject = (path: string, waitMs = 2_000): ProjectLock | null => {
  const db = new Database(path, { timeout: waitMs });
  try {
    db.exec('begin exclusive');
  } catch {
    db.close();
    return null;
  }
  return { release: () => db.close() };
};
