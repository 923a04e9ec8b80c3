import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commitOf, commitTree, moveBranch } from './commits.ts';
import { findRepository } from './find-repository.ts';
import { GitError, required, requiredLine } from './git.ts';
import { type GitDirs, withGitDirs } from './git-dirs.ts';
import { mendMove } from './move-files.ts';
import { movePlaces, readMove } from './move-record.ts';
import type { Repository } from './repository.ts';
import { snapshotInThread } from './snapshots.ts';
import { removeDeadLock, userLocks } from './user-locks.ts';
import { removeDeadUses } from './uses.ts';

export interface StoresOptions {
  /** Where git is. */
  readonly program: string;
  readonly projectRoot: string;
  /** In the state folder. */
  readonly folder: string;
}

/** A repository in use, and the commit that new work begins with. */
export interface Begun {
  readonly dirs: GitDirs;
  readonly head: string;
}

/** Ignored in a project without git, where no `.gitignore` says so: what tools make, and the tracker. */
export const ignoredWithoutGit = ['.beads', 'node_modules', '.venv', 'venv', '__pycache__'];
const ownBranch = 'main';

/** Where work is kept: in the repository of the project, or in one of ours when it has none, or none with a commit. */
export const createStores = ({ program, projectRoot, folder }: StoresOptions) => {
  const uses = join(folder, 'uses');
  const ownDir = join(folder, 'project.git');
  const ownIndex = join(folder, 'project.index');
  const moving = movePlaces(folder);

  const own = async (): Promise<Repository> => {
    const made = ['objects/info', 'objects/pack', 'refs/heads', 'info'];
    for (const name of made) await mkdir(join(ownDir, name), { recursive: true, mode: 0o700 });
    await writeFile(join(ownDir, 'HEAD'), `ref: refs/heads/${ownBranch}\n`);
    await writeFile(join(ownDir, 'info', 'exclude'), ignoredWithoutGit.map((name) => `${name}/\n`).join(''));
    const top = await realpath(projectRoot);
    return { kind: 'own', top, prefix: '', gitDir: ownDir, commonDir: ownDir, format: 'sha1', hooks: [], carried: [] };
  };

  /** A commit of the user's folder as it is now, on top of how it was before. */
  const commitOwn = async (dirs: GitDirs, signal: AbortSignal | undefined): Promise<string> => {
    const { git, repository, objects } = dirs;
    const before = await commitOf(dirs, 'HEAD');
    const { tree } = await snapshotInThread(
      {
        ...{ program, gitDir: dirs.gitDir, userGitDir: dirs.userGitDir, isAuto: false, format: repository.format },
        ...{ temporary: join(dirs.temporary, 'own'), top: repository.top, prefix: '', index: ownIndex },
        ...{ base: before ?? '', objects, otherObjects: null, largeFiles: null, carried: [] },
        ...{ isRepository: false, protects: false, hasRules: true },
      },
      signal,
    );
    if (tree === null && before !== null) return before;
    const empty = (): Promise<string> =>
      requiredLine('the folder cannot be kept', git(['hash-object', '-t', 'tree', '-w', '--stdin'], { input: '' }));
    const commit = await commitTree(dirs, {
      tree: tree ?? (await empty()),
      parents: before === null ? [] : [before],
      message: 'The project folder as it was',
      role: 'project',
    });
    await required('the folder cannot be kept', moveBranch(dirs, ownBranch, commit, before));
    const where = { cwd: repository.top, env: { GIT_WORK_TREE: repository.top, GIT_INDEX_FILE: ownIndex } };
    await required('the folder cannot be kept', git(['read-tree', '--reset', commit], where));
    // What is different again by now is found the next time.
    await git(['update-index', '-q', '--refresh'], where);
    return commit;
  };

  const indexOf = ({ kind, gitDir }: Repository): string => (kind === 'own' ? ownIndex : join(gitDir, 'index'));

  const use = async <Result>(kind: Repository['kind'], work: (dirs: GitDirs) => Promise<Result>): Promise<Result> => {
    const repository = kind === 'own' ? await own() : await findRepository(program, projectRoot);
    if (repository === null) throw new GitError('the repository of this project is gone');
    return withGitDirs(program, repository, uses, work);
  };

  const mend = async (): Promise<string | null> => {
    const record = await readMove(moving);
    if (record === null) return null;
    return use(record.kind, (dirs) => mendMove(dirs, { moving, index: indexOf(dirs.repository) }, record));
  };

  const beginOwn = async <Result>(work: (begun: Begun) => Promise<Result>, signal?: AbortSignal): Promise<Result> => {
    await mend();
    return use('own', async (dirs) => work({ dirs, head: await commitOwn(dirs, signal) }));
  };

  return {
    uses,
    /** Removes what a crash left of earlier uses: folders of ours, and the lock of a branch. */
    tidy: async (): Promise<void> => {
      await removeDeadUses(uses);
      const repository = await findRepository(program, projectRoot).catch(() => null);
      const locks = [
        ...(repository === null ? [] : userLocks(repository.gitDir, indexOf(repository))),
        ...userLocks(ownDir, ownIndex),
      ];
      for (const lock of locks) await removeDeadLock(lock);
    },
    /** Uses the repository that new work is kept in. @throws GitError when the project's is not used */
    begin: async <Result>(work: (begun: Begun) => Promise<Result>, signal?: AbortSignal): Promise<Result> => {
      const repository = await findRepository(program, projectRoot);
      if (repository === null) return beginOwn(work, signal);
      const found = await withGitDirs(program, repository, uses, async (dirs) => {
        const head = await commitOf(dirs, 'HEAD');
        return head === null ? null : { result: await work({ dirs, head }) };
      });
      return found === null ? beginOwn(work, signal) : found.result;
    },
    /** Uses the repository that earlier work is in. */
    use,
    /** Ends a merge that a crash cut short. @returns what the user must know of it, or null */
    mend,
    /** The user's files, and what stands for their branch. */
    checkout: async (dirs: GitDirs, filters: readonly string[], signal?: AbortSignal) => {
      const places = { index: indexOf(dirs.repository), moving };
      if (dirs.repository.kind === 'own') {
        await commitOwn(dirs, signal);
        return { ...places, branch: ownBranch, into: 'the project folder', filters: [] };
      }
      const [, branch = null] = /^ref: refs\/heads\/(\S+)/.exec(dirs.head) ?? [];
      return { ...places, branch, into: branch ?? '', filters };
    },
  };
};
