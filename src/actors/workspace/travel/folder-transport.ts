import { join } from 'node:path';
import { commitOf, commitText, moveBranch } from '../commits.ts';
import { findBareRepository } from '../find-repository.ts';
import { GitError, reasonIn, requireGit } from '../git.ts';
import { type GitDirs, withGitDirs } from '../git-dirs.ts';
import type { WorkTransport } from './transport.ts';

interface WorkRef {
  readonly name: string;
  readonly tip: string;
}

const branchTips = async ({ git }: GitDirs, name: string): Promise<readonly WorkRef[]> => {
  const format = '--format=%(objectname) %(refname:lstrip=2)';
  const listed = await requireGit(
    'the branches cannot be read',
    git(['for-each-ref', format, `refs/heads/${name}`]),
  );
  return listed
    .toString()
    .split('\n')
    .flatMap((line) => {
      const [, tip, ref] = /^([0-9a-f]+) (\S+)$/.exec(line) ?? [];
      return tip === undefined || ref === undefined ? [] : [{ name: ref, tip }];
    });
};

/** The branches of people, and those of the same task: thousands of others would be walked each time. */
const isNear =
  (name: string) =>
  (ref: WorkRef): boolean =>
    !ref.name.startsWith('agent/') ||
    ref.name.startsWith(`${name.split('/').slice(0, 2).join('/')}/`);

/** Copies what is reachable from some commits, and not from a branch of `to`, as one pack. */
const copyCommits = async (
  to: GitDirs,
  from: GitDirs,
  { name, commits }: { readonly name: string; readonly commits: readonly string[] },
  signal: AbortSignal | undefined,
): Promise<void> => {
  const known = (await branchTips(to, '')).filter(isNear(name));
  const input = [...commits, '--not', ...known.map(({ tip }) => tip), ''].join('\n');
  const args = ['pack-objects', '--revs', '--quiet', '--non-empty', '--delta-base-offset'];
  await requireGit(
    'the work cannot be copied',
    to.git([...args, join(to.objects, 'pack', 'pack')], {
      input,
      signal,
      env: { GIT_ALTERNATE_OBJECT_DIRECTORIES: from.objects },
    }),
  );
};

/**
 * A bare repository in a folder that all servers mount. It is read and written as the project is: no
 * program of its configuration runs, and no hook. `uses`: the folder of our git directories.
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
    return withGitDirs(program, shared, uses, work);
  };
  return {
    bring: (dirs, wanted, signal) =>
      use(dirs, async (shared) => {
        const brought = [];
        for (const { name, read } of wanted) {
          const tip = (await branchTips(shared, name)).find((each) => each.name === name)?.tip;
          if (tip === undefined) continue;
          await copyCommits(dirs, shared, { name, commits: [tip] }, signal);
          brought.push({ name, tip, work: read(await commitText(dirs, tip)) });
        }
        return brought;
      }),
    put: (dirs, { name, commit, from }, signal) =>
      use(dirs, async (shared) => {
        await copyCommits(shared, dirs, { name, commits: [commit] }, signal);
        const moved = await moveBranch(shared, name, commit, from);
        if (moved.ok) return true;
        if ((await commitOf(shared, `refs/heads/${name}`)) !== from) return false;
        throw new GitError(`the branch ${name} of ${path} stays: ${reasonIn(moved.stderr)}`);
      }),
  };
};
