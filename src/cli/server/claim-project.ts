import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '../../actors/is-alive.ts';
import { lockProject, type ProjectLock } from '../../actors/store/project-lock.ts';
import { type Project, stateFiles } from '../project.ts';
import { ensurePrivateFolder } from './private-files.ts';
import { readServerFile } from './server-file.ts';

export class AlreadyServedError extends Error {
  override readonly name = 'AlreadyServedError';
}

const lockMs = 5_000;
const lockPollMs = 50;

/**
 * Takes the project's lock. One that is about to be free, because its server is stopping, is waited for.
 * @throws AlreadyServedError naming the other server, PrivateFileError
 */
export const claimProject = async ({ stateDir, root }: Project): Promise<ProjectLock> => {
  ensurePrivateFolder(stateDir);
  const files = stateFiles(stateDir);
  const deadline = performance.now() + lockMs;
  for (;;) {
    const lock = lockProject(files.lock);
    if (lock !== null) return lock;
    const other = readServerFile(files.server);
    const named = other !== null && isAlive(other.pid);
    if (!named && performance.now() < deadline) {
      await delay(lockPollMs);
      continue;
    }
    const who = other === null ? 'another process' : `the server at ${other.url} (pid ${other.pid})`;
    throw new AlreadyServedError(`${root} is already served by ${who}; stop it first`);
  }
};
