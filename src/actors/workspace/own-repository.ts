import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomically } from '../files/atomic-write.ts';
import { commitOf, commitTree, moveBranch } from './commits.ts';
import { requiredLine, requireGit } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { plainText } from './plain.ts';
import type { Repository } from './repository.ts';
import { snapshotInThread } from './snapshots.ts';

export interface StoresOptions {
  readonly program: string;
  readonly projectRoot: string;
  readonly folder: string;
  /** Absolute paths that the server trusts. */
  readonly trusted?: (() => readonly string[]) | undefined;
}

/**
 * Ignored in a project without git, where no `.gitignore` says so: what tools make, and the
 * tracker.
 */
const ignoredWithoutGit = ['.beads', 'node_modules', '.venv', 'venv', '__pycache__'];
export const ownBranch = 'main';

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
      ...{
        program,
        gitDir: dirs.gitDir,
        userGitDir: dirs.userGitDir,
        hasAutoCrlf: false,
        format: repository.format,
      },
      ...{
        temporary: join(dirs.temporary, 'own'),
        top: repository.top,
        prefix: '',
        index: ownIndex,
      },
      ...{
        base: before ?? '',
        objects,
        otherObjects: null,
        largeFiles: null,
        carried: [],
        keep: null,
      },
      ...{
        copied: [],
        heldPlaces: [],
        isRepository: false,
        protects: false,
        hasIgnoreRules: true,
      },
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
export const createOwnRepository = ({ program, projectRoot, folder }: StoresOptions) => {
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
