import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { writeFileAtomically } from '../../actors/atomic-write.ts';
import { isAlive } from '../../actors/is-alive.ts';
import { lockProject, type ProjectLock } from '../../actors/store/project-lock.ts';
import { type Project, requireOwnServer, stateFiles } from '../project.ts';
import { ensurePrivateFolder, PrivateFileError } from './private-files.ts';
import { readServerFile } from './server-file.ts';

export class AlreadyServedError extends Error {
  override readonly name = 'AlreadyServedError';
}

const lockMs = 5_000;
const lockPollMs = 50;

/** Whose the usual names in the folder are: the first project that was served with it. */
const keepOwner = async (file: string, root: string): Promise<void> => {
  if (existsSync(file)) return;
  try {
    await writeFileAtomically(file, `${root}\n`);
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw new PrivateFileError(`the state folder ${dirname(file)} cannot be used (${words})`);
  }
};

/**
 * Takes the project's lock. One that is about to be free, because its server is stopping, is waited for.
 * @throws AlreadyServedError naming the other server, PrivateFileError, UsageError when the folder serves another project
 */
export const claimProject = async (project: Project): Promise<ProjectLock> => {
  const { stateDir, root } = project;
  ensurePrivateFolder(stateDir);
  const files = stateFiles(stateDir);
  const deadline = performance.now() + lockMs;
  for (;;) {
    const lock = lockProject(files.lock);
    if (lock !== null) {
      await keepOwner(files.owner, root);
      return lock;
    }
    const other = readServerFile(files.server);
    const named = other !== null && isAlive(other.pid);
    if (!named && performance.now() < deadline) {
      await delay(lockPollMs);
      continue;
    }
    if (other !== null) requireOwnServer(project, other);
    const who = other === null ? 'another process' : `the server at ${other.url} (pid ${other.pid})`;
    throw new AlreadyServedError(`${root} is already served by ${who}; stop it first`);
  }
};
