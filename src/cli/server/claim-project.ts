import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { writeFileAtomically } from '../../actors/atomic-write.ts';
import { isAlive } from '../../actors/is-alive.ts';
import { lockProject, type ProjectLock } from '../../actors/store/project-lock.ts';
import { type Project, requireOwnState, stateFiles } from '../project.ts';
import { ensurePrivateFolder } from './private-files.ts';
import { readServerFile } from './server-file.ts';

export class AlreadyServedError extends Error {
  override readonly name = 'AlreadyServedError';
}

const lockMs = 5_000;
const lockPollMs = 50;

/**
 * Takes the project's lock. One that is about to be free, because its server is stopping, is waited for.
 * @throws AlreadyServedError naming the other server, PrivateFileError, UsageError when the state is another project's
 */
export const claimProject = async (project: Project): Promise<ProjectLock> => {
  const { stateDir, root } = project;
  ensurePrivateFolder(stateDir);
  requireOwnState(project);
  const files = stateFiles(stateDir);
  const deadline = performance.now() + lockMs;
  for (;;) {
    const lock = lockProject(files.lock);
    if (lock !== null) {
      if (!existsSync(files.owner)) await writeFileAtomically(files.owner, `${root}\n`);
      return lock;
    }
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
