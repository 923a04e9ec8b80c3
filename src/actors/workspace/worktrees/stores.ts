import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomically } from '../../files/atomic-write.ts';
import { relativeInside } from '../../files/link-places.ts';
import { commitOf, commitTree, moveBranch } from '../git/commits.ts';
import { findRepository } from '../git/find-repository.ts';
import { GitError, requiredLine, requireGit } from '../git/git.ts';
import { type GitDirs, type Repository, withGitDirs } from '../git/git-dirs.ts';
import { plainText } from '../git/plain.ts';
import { removeDeadUses } from '../git/uses.ts';
import { recoverMerge } from '../merging/update-files.ts';
import { readUpdate, updatePlacesIn } from '../merging/update-record.ts';
import { removeDeadLock, userLocks } from '../merging/user-locks.ts';
import { snapshotInThread } from '../saving/snapshots.ts';

interface StoresOptions {
  readonly program: string;
  readonly projectRoot: string;
  readonly folder: string;
  /** Absolute paths that the server trusts. */
  readonly trusted?: () => readonly string[];
}

/**
 * Ignored in a project without git, where no `.gitignore` says so: what tools make, and the
 * tracker.
 */
const ignoredWithoutGit = ['.beads', 'node_modules', '.venv', 'venv', '__pycache__'];
const ownBranch = 'main';

const contents = [
  ['HEAD', `ref: refs/heads/${ownBranch}\n`],
  ['info/exclude', ignoredWithoutGit.map((name) => `${name}/\n`).join('')],
] as const;

/** Commits the user's folder as it is now. @returns the commit, the last one when nothing changed */
const commitFolder = async (
  program: string,
  ownIndex: string,
  dirs: GitDirs,
  signal: AbortSignal | undefined,
): Promise<string> => {
  const { git, repository, objects } = dirs;
  const before = await commitOf(dirs, 'HEAD');
  const { tree } = await snapshotInThread(
    {
      program,
      gitDir: dirs.gitDir,
      userGitDir: dirs.userGitDir,
      hasAutoCrlf: false,
      format: repository.format,
      temporary: join(dirs.temporary, 'own'),
      top: repository.top,
      prefix: '',
      index: ownIndex,
      base: before ?? '',
      objects,
      otherObjects: null,
      largeFiles: null,
      carried: [],
      keep: null,
      copied: [],
      heldPlaces: [],
      isRepository: false,
      protects: false,
      hasIgnoreRules: true,
    },
    signal,
  );
  if (tree === null && before !== null) return before;
  const empty = (): Promise<string> =>
    requiredLine(
      'the project folder cannot be saved',
      git(['hash-object', '-t', 'tree', '-w', '--stdin'], { input: '' }),
    );
  const commit = await commitTree(dirs, {
    tree: tree ?? (await empty()),
    parents: before === null ? [] : [before],
    message: 'The project folder as it was',
    role: 'project',
  });
  await requireGit(
    'the project folder cannot be saved',
    moveBranch(dirs, ownBranch, commit, before),
  );
  const where = {
    cwd: repository.top,
    env: { GIT_WORK_TREE: repository.top, GIT_INDEX_FILE: ownIndex },
  };
  await requireGit(
    'the project folder cannot be saved',
    git(['read-tree', '--reset', commit], where),
  );
  // Later changes are found the next time.
  await git(['update-index', '-q', '--refresh'], where);
  return commit;
};

/**
 * Our repository for a project without git, or without a commit. It is in the state folder; the
 * user's folder is its working tree.
 */
const createOwnRepository = ({ program, projectRoot, folder }: StoresOptions) => {
  const ownDir = join(folder, 'project.git');
  const ownIndex = join(folder, 'project.index');

  const own = async (): Promise<Repository> => {
    const made = ['objects/info', 'objects/pack', 'refs/heads', 'info'];
    for (const name of made) await mkdir(join(ownDir, name), { recursive: true, mode: 0o700 });
    for (const [name, text] of contents) {
      const file = join(ownDir, name);
      // Others may be reading it.
      if ((await plainText(file)) !== text) await writeFileAtomically(file, text);
    }
    const top = await realpath(projectRoot);
    return {
      kind: 'own',
      top,
      prefix: '',
      gitDir: ownDir,
      commonDir: ownDir,
      format: 'sha1',
      hooks: [],
      trusted: [],
      carried: [],
    };
  };

  return {
    dir: ownDir,
    index: ownIndex,
    open: own,
    commit: (dirs: GitDirs, signal: AbortSignal | undefined): Promise<string> =>
      commitFolder(program, ownIndex, dirs, signal),
  };
};

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
