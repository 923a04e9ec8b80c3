import { existsSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { writeFileAtomically } from '../../actors/files/atomic-write.ts';
import { isAlive } from '../../actors/process/pid.ts';
import { type ProcessLock, takeLock } from '../../actors/store/process-lock.ts';
import { messageOf } from '../../machines/message-of.ts';
import {
  type Project,
  readTrimmedOrNull,
  requireOwnServer,
  stateFiles,
} from '../config/places/project.ts';
import { ensurePrivateFolder, PrivateFileError } from './secrets/private-files.ts';
import { readServerFile, type ServerFile } from './server-file.ts';

export class AlreadyServedError extends Error {
  override readonly name = 'AlreadyServedError';
}

const lockMs = 5_000;
const lockPollMs = 50;

/** Records the first project of the folder, which owns the plain file names there. */
export const keepOwner = async (file: string, root: string): Promise<void> => {
  if (existsSync(file)) return;
  try {
    await writeFileAtomically(file, `${root}\n`);
  } catch (error) {
    const words = messageOf(error);
    throw new PrivateFileError(`the state folder ${dirname(file)} cannot be used (${words})`);
  }
};

/**
 * Locks the default state folder, where servers with other folders meet. Null when another process
 * holds the lock.
 */
const lockDefault = ({ stateDir, defaultDir }: Project): ProcessLock | null => {
  const files = stateFiles(defaultDir);
  try {
    ensurePrivateFolder(defaultDir);
    const lock = takeLock(files.lock);
    if (lock !== null) writeFileSync(files.servedFrom, `${stateDir}\n`, { mode: 0o600 });
    return lock;
  } catch {
    // Without a writable home, servers cannot meet there; the separate folder exists for this case.
    return { release: () => {} };
  }
};

const lockBoth = (project: Project): ProcessLock | null => {
  const own = takeLock(stateFiles(project.stateDir).lock);
  if (own === null || project.stateDir === project.defaultDir) return own;
  const atDefault = lockDefault(project);
  if (atDefault === null) {
    own.release();
    return null;
  }
  return {
    release: () => {
      atDefault.release();
      own.release();
    },
  };
};

/** The project's running server, which may use another state folder. */
const serverOf = ({ stateDir, defaultDir }: Project): ServerFile | null => {
  const folders = [
    stateDir,
    defaultDir,
    readTrimmedOrNull(stateFiles(defaultDir).servedFrom) ?? defaultDir,
  ];
  const all = folders.map((folder) => readServerFile(stateFiles(folder).server));
  return all.find((file) => file !== null && isAlive(file.pid)) ?? all[0] ?? null;
};

/**
 * Takes the project's lock; waits for a stopping server. @throws AlreadyServedError naming the
 * other server, PrivateFileError, UsageError when the folder serves another project
 */
export const lockProject = async (project: Project): Promise<ProcessLock> => {
  const { stateDir, root } = project;
  ensurePrivateFolder(stateDir);
  const deadline = performance.now() + lockMs;
  for (;;) {
    const lock = lockBoth(project);
    if (lock !== null) {
      await keepOwner(stateFiles(stateDir).owner, root);
      return lock;
    }
    const other = serverOf(project);
    const named = other !== null && isAlive(other.pid);
    if (!named && performance.now() < deadline) {
      await delay(lockPollMs);
      continue;
    }
    if (other !== null) requireOwnServer(project, other);
    const who =
      other === null ? 'another process' : `the server at ${other.url} (pid ${other.pid})`;
    throw new AlreadyServedError(`${root} is already served by ${who}; stop it first`);
  }
};
