import { lstat, readdir, realpath } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { GitError } from './git.ts';
import type { Repository } from './git-dirs.ts';
import { hookFolders } from './obeyed-places.ts';
import { isPlain, isPresent, objectStore, plainText, requirePlainEntries } from './plain.ts';
import {
  carriedOf,
  formatOf,
  isOn,
  readGitSettings,
  refuseUnsupported,
} from './repository-config.ts';

interface RepositoryDirs {
  readonly gitDir: string;
  readonly commonDir: string;
}

const topOf = async (folder: string): Promise<string | null> => {
  for (let at = folder; ; at = dirname(at)) {
    if (await isPresent(join(at, '.git'))) return at;
    if (at === dirname(at)) return null;
  }
};

const pointer = /^gitdir: ([^\n]+)\n?$/;

/**
 * The directories of a linked working tree (git worktree) or submodule. Accepted only when the
 * other side names this very folder and lies where git puts it.
 */
const linkedDirs = async (top: string, text: string): Promise<RepositoryDirs> => {
  const [, target] = pointer.exec(text) ?? [];
  const file = join(top, '.git');
  if (target === undefined)
    throw new GitError(`${file} is neither a repository nor a pointer to one`);
  const gitDir = await realpath(resolve(top, target)).catch(() => null);
  if (gitDir === null) throw new GitError(`${file} points to ${target}, which does not exist`);
  const back = await plainText(join(gitDir, 'gitdir'));
  const common = await plainText(join(gitDir, 'commondir'));
  // A submodule has neither; its core.worktree is checked with the other settings.
  if (back === null && common === null) return { gitDir, commonDir: gitDir };
  const named =
    back === null ? null : await realpath(resolve(gitDir, back.trim())).catch(() => null);
  if (named !== file || common === null)
    throw new GitError(`${file} points to ${gitDir}, which belongs to another folder`);
  const commonDir = await realpath(resolve(gitDir, common.trim()));
  if (dirname(gitDir) === join(commonDir, 'worktrees')) return { gitDir, commonDir };
  throw new GitError(
    `${file} points to ${gitDir}, which is no worktree of ${commonDir}; run git worktree repair there`,
  );
};

const repositoryDirsOf = async (top: string): Promise<RepositoryDirs | null> => {
  const path = join(top, '.git');
  const stat = await lstat(path);
  if (stat.isDirectory()) {
    // An empty folder, such as a mount leaves behind, is no repository.
    if ((await readdir(path)).length === 0) return null;
    if (await isPresent(join(path, 'commondir')))
      throw new GitError(`${path}/commondir leads to another repository`);
    return { gitDir: path, commonDir: path };
  }
  const text = await plainText(path);
  return text === '' || text === null ? null : linkedDirs(top, text);
};

const requireOwner = async (path: string): Promise<void> => {
  const { uid } = await lstat(path);
  if (process.getuid !== undefined && uid !== process.getuid())
    throw new GitError(
      `${path} belongs to another user (${uid}); run the server as that user, or make the folder yours with chown`,
    );
};

const requirePlainParts = async ({ gitDir, commonDir }: RepositoryDirs): Promise<void> => {
  const inCommon = ['config', 'packed-refs', 'shallow'].map((name) =>
    isPlain(join(commonDir, name), 'file'),
  );
  const own = ['HEAD', 'index', 'config.worktree'].map((name) =>
    isPlain(join(gitDir, name), 'file'),
  );
  const folders = ['objects', 'refs', 'logs'].map((name) =>
    isPlain(join(commonDir, name), 'folder'),
  );
  await Promise.all([...inCommon, ...own, ...folders, isPlain(join(gitDir, 'logs'), 'folder')]);
  await objectStore(commonDir);
  await Promise.all(
    ['', 'heads'].map((name) => requirePlainEntries(join(commonDir, 'refs', name))),
  );
};

/**
 * Finds the repository that a folder lies in without running git in it; null when there is none.
 * @throws GitError with the reason why a repository is refused
 */
export const findRepository = async (
  program: string,
  projectRoot: string,
): Promise<Repository | null> => {
  const project = await realpath(projectRoot);
  const top = await topOf(project);
  if (top === null) return null;
  const dirs = await repositoryDirsOf(top);
  if (dirs === null) return null;
  const { gitDir, commonDir } = dirs;
  for (const path of [top, join(top, '.git'), gitDir, commonDir]) await requireOwner(path);
  await requirePlainParts(dirs);
  const [common, own] = await Promise.all([
    readGitSettings(program, join(commonDir, 'config')),
    readGitSettings(program, join(gitDir, 'config.worktree')),
  ]);
  const settings = new Map([...common, ...own]);
  await refuseUnsupported(settings, gitDir, top);
  if (gitDir === commonDir && gitDir !== join(top, '.git') && !settings.has('core.worktree'))
    throw new GitError(
      isOn(settings.get('core.bare'))
        ? `${join(top, '.git')} points to the bare repository ${gitDir}, so there are no files to work on; make a worktree and use it as the project: git worktree add main`
        : `${join(top, '.git')} points to ${gitDir}, which does not name this folder; if that is intended, run git config core.worktree ${top}`,
    );
  if ((await readdir(gitDir)).some((name) => name.startsWith('sharedindex.')))
    throw new GitError('this repository uses a split index; run git update-index --no-split-index');
  const below = relative(top, project);
  const prefix = below === '' ? '' : `${below}/`;
  const [format, carried] = [formatOf(settings), carriedOf(settings)];
  const hooks = await hookFolders(program, top, settings);
  return { kind: 'project', top, prefix, gitDir, commonDir, format, hooks, trusted: [], carried };
};

/** Opens a bare repository as data. @throws GitError with the reason why it is refused */
export const findBareRepository = async (program: string, path: string): Promise<Repository> => {
  const top = await realpath(path).catch(() => null);
  if (top === null || !(await isPlain(join(top, 'HEAD'), 'file')))
    throw new GitError(
      `${path} is no bare repository; make one: git clone --bare <project> ${path}`,
    );
  const dirs = { gitDir: top, commonDir: top };
  await requirePlainParts(dirs);
  const settings = await readGitSettings(program, join(top, 'config'));
  await refuseUnsupported(settings, top, top);
  const format = formatOf(settings);
  return { kind: 'project', top, prefix: '', ...dirs, format, hooks: [], trusted: [], carried: [] };
};
