import Database from 'libsql';

/** One server serves one project. The lock is the operating system's, so it dies with its process, however that ends. */
export interface ProjectLock {
  release(): void;
}

/** @returns null when another process holds the lock at this moment. */
export const lockProject = (path: string): ProjectLock | null => {
  const db = new Database(path, { timeout: 0 });
  try {
    db.exec('begin exclusive');
  } catch {
    db.close();
    return null;
  }
  return { release: () => db.close() };
};
