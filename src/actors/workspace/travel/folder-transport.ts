import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { moveBranch } from '../commits.ts';
import { findBareRepository } from '../find-repository.ts';
import { GitError, reasonIn, requireGit } from '../git.ts';
import { type GitDirs, withGitDirs } from '../git-dirs.ts';
import { requirePlainObjects } from '../object-store.ts';
import { foreignCommit, isWhole, receiveObjects, sendObjects } from './copy-objects.ts';
import { sharedTip, sharedTipsOfPeople } from './shared-refs.ts';
import type { WorkTransport } from './transport.ts';

/** What our branches reach: those of people, and of the same task, since others are thousands. */
const knownFor = async (
  { git }: GitDirs,
  name: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> => {
  const format = '--format=%(objectname) %(refname:lstrip=2)';
  const listed = git(['for-each-ref', format, 'refs/heads/'], { signal });
  const ofTask = `${name.split('/').slice(0, 2).join('/')}/`;
  return (await requireGit('the branches cannot be read', listed))
    .toString()
    .split('\n')
    .flatMap((line) => {
      const [tip = '', branch = ''] = line.split(' ');
      const isNear = !branch.startsWith('agent/') || branch.startsWith(ofTask);
      return tip === '' || !isNear ? [] : [tip];
    });
};

/**
 * A bare repository in a folder that all servers mount. Others may write there, so it is data: no
 * program of its configuration runs, no hook, and nothing of it is listed or followed by git that is
 * no plain file. `uses`: the folder of our git directories.
 */
export const createFolderTransport = (
  program: string,
  path: string,
  uses: string,
): WorkTransport => {
  const use = async <Result>(
    { repository }: GitDirs,
    work: (shared: GitDirs) => Promise<Result>,
  ): Promise<Result> => {
    const shared = await findBareRepository(program, path);
    if (shared.format !== repository.format)
      throw new GitError(
        `${path} has objects of the format ${shared.format}, the project of ${repository.format}`,
      );
    await requirePlainObjects(shared.commonDir);
    return withGitDirs(program, shared, uses, work);
  };
  return {
    bring: (dirs, wanted, signal) =>
      use(dirs, async (shared) => {
        const brought = [];
        for (const { name, read } of wanted) {
          const tip = await sharedTip(shared.repository.commonDir, name);
          if (tip === null) continue;
          // Before anything is copied: nobody else chooses what that is.
          const work = read(await foreignCommit(shared, tip, signal));
          const known = await knownFor(dirs, name, signal);
          if (!(await isWhole(dirs, tip, known, signal)))
            await receiveObjects(dirs, shared, { commits: [tip], known }, signal);
          brought.push({ name, tip, work });
        }
        return brought;
      }),
    remove: (dirs, name, signal) =>
      use(dirs, async (shared) => {
        const tip = await sharedTip(shared.repository.commonDir, name);
        if (tip === null) return;
        const gone = await moveBranch(shared, name, null, tip, { signal });
        if (!gone.ok)
          throw new GitError(`the branch ${name} of ${path} stays: ${reasonIn(gone.stderr)}`);
      }),
    check: (dirs) =>
      use(dirs, async ({ repository: { commonDir } }) => {
        for (const part of ['objects/pack', 'refs/heads'])
          await access(join(commonDir, part), constants.W_OK).catch(() => {
            throw new GitError(
              `${join(commonDir, part)} cannot be written; give the folder to the user of the servers: chown -R ${userInfo().username} ${path}`,
            );
          });
        await sharedTipsOfPeople(commonDir);
      }),
    put: (dirs, { name, commit, from }, signal) =>
      use(dirs, async (shared) => {
        const { commonDir } = shared.repository;
        if ((await sharedTip(commonDir, name)) !== from) return false;
        const people = await sharedTipsOfPeople(commonDir);
        const known = from === null ? people : [...people, from];
        await sendObjects(shared, dirs, { commits: [commit], known }, signal);
        const moved = await moveBranch(shared, name, commit, from, { signal });
        if (moved.ok) return true;
        if ((await sharedTip(commonDir, name)) !== from) return false;
        throw new GitError(`the branch ${name} of ${path} stays: ${reasonIn(moved.stderr)}`);
      }),
  };
};
