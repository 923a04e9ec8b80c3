import { join } from 'node:path';
import { commitOf } from './commits.ts';
import { findRepository } from './find-repository.ts';
import { GitError } from './git.ts';
import { type GitDirs, withGitDirs } from './git-dirs.ts';
import { relativeInside } from './hooks-folder.ts';
import { createOwnRepository, ownBranch, type StoresOptions } from './own-repository.ts';
import type { Repository } from './repository.ts';
import { recoverMerge } from './update-files.ts';
import { readUpdate, updatePlacesIn } from './update-record.ts';
import { removeDeadLock, userLocks } from './user-locks.ts';
import { removeDeadUses } from './uses.ts';

/** A repository in use, and the commit that new work begins with. */
export interface RepositoryAtHead {
  readonly dirs: GitDirs;
  readonly head: string;
}

type UseRepository = <Result>(
  kind: Repository['kind'],
  work: (dirs: GitDirs) => Promise<Result>,
) => Promise<Result>;

const createUpdateRecovery = (
  places: ReturnType<typeof updatePlacesIn>,
  use: UseRepository,
  indexOf: (repository: Repository) => string,
) => {
  const notShown: string[] = [];

  const recover = async (): Promise<string | null> => {
    const record = await readUpdate(places);
    if (record !== null) {
      const told = await use(record.kind, (dirs) =>
        recoverMerge(dirs, { places, index: indexOf(dirs.repository) }, record),
      );
      if (told !== null) notShown.push(told);
    }
    return notShown.length === 0 ? null : notShown.join('; ');
  };

  return { recover, shown: (): void => void notShown.splice(0) };
};

/**
 * Opens the repository of work: the project's, or ours when the project has none, or none with a
 * commit.
 */
export const createStores = (options: StoresOptions) => {
  const { program, projectRoot, folder, trusted = () => [] } = options;
  const uses = join(folder, 'uses');
  const own = createOwnRepository(options);
  const withTrusted = (repository: Repository): Repository => ({
    ...repository,
    trusted: trusted().flatMap((path) => relativeInside(repository.top, path) ?? []),
  });
  const find = async (): Promise<Repository | null> => {
    const found = await findRepository(program, projectRoot);
    return found === null ? null : withTrusted(found);
  };
  const places = updatePlacesIn(folder);

  const indexOf = ({ kind, gitDir }: Repository): string =>
    kind === 'own' ? own.index : join(gitDir, 'index');

  const use: UseRepository = async (kind, work) => {
    const repository = kind === 'own' ? withTrusted(await own.open()) : await find();
    if (repository === null) throw new GitError('the repository of this project is gone');
    return withGitDirs(program, repository, uses, work);
  };

  /** The checked-out branch, and how people call it. */
  const targetOf = ({ repository, head }: Pick<GitDirs, 'repository' | 'head'>) => {
    if (repository.kind === 'own') return { branch: ownBranch, into: 'the project folder' };
    const [, branch = null] = /^ref: refs\/heads\/(\S+)/.exec(head) ?? [];
    return { branch, into: branch ?? '' };
  };

  const { recover, shown } = createUpdateRecovery(places, use, indexOf);

  const beginOwn = async <Result>(
    work: (atHead: RepositoryAtHead) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> => {
    await recover();
    return use('own', async (dirs) => work({ dirs, head: await own.commit(dirs, signal) }));
  };

  return {
    uses,
    /** Removes what a crash left of earlier uses: folders of ours, and the lock of a branch. */
    tidy: async (): Promise<void> => {
      await removeDeadUses(uses);
      const repository = await find().catch(() => null);
      const locks = [
        ...(repository === null ? [] : userLocks(repository.gitDir, indexOf(repository))),
        ...userLocks(own.dir, own.index),
      ];
      for (const lock of locks) await removeDeadLock(lock);
    },
    /** Uses the repository for new work. @throws GitError when the project's is refused */
    begin: async <Result>(
      work: (atHead: RepositoryAtHead) => Promise<Result>,
      signal?: AbortSignal,
    ): Promise<Result> => {
      const repository = await find();
      if (repository === null) return beginOwn(work, signal);
      const found = await withGitDirs(program, repository, uses, async (dirs) => {
        const head = await commitOf(dirs, 'HEAD');
        return head === null ? null : { result: await work({ dirs, head }) };
      });
      return found === null ? beginOwn(work, signal) : found.result;
    },
    /** Uses the repository that new work would begin in, and changes nothing. */
    current: async <Result>(work: (dirs: GitDirs) => Promise<Result>): Promise<Result> => {
      const repository = await find();
      if (repository === null) return use('own', work);
      const found = await withGitDirs(program, repository, uses, async (dirs) =>
        (await commitOf(dirs, 'HEAD')) === null ? null : { result: await work(dirs) },
      );
      return found === null ? use('own', work) : found.result;
    },
    /** Uses the repository that earlier work is in. */
    use,
    /**
     * Undoes or finishes an interrupted merge. @returns the messages for the user until they are
     * shown, or null
     */
    recover,
    shown,
    targetOf,
    checkout: async (dirs: GitDirs, filters: readonly string[], signal?: AbortSignal) => {
      const where = { index: indexOf(dirs.repository), places };
      if (dirs.repository.kind === 'own') {
        await own.commit(dirs, signal);
        return { ...where, ...targetOf(dirs), filters: [] };
      }
      return { ...where, ...targetOf(dirs), filters };
    },
  };
};
