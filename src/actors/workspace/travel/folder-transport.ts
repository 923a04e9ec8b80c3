import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { commitText, moveBranch } from '../git/commits.ts';
import { findBareRepository } from '../git/find-repository.ts';
import { type GitAnswer, type GitCall, GitError, reasonIn, requireGit } from '../git/git.ts';
import { type GitDirs, withGitDirs } from '../git/git-dirs.ts';
import { plainEntries, plainText, requirePlainObjects, requirePlainWay } from '../git/plain.ts';

import type { WorkTransport } from './transport.ts';

/** More memory at once is for nobody's objects; git streams large files. */
const memoryAtMost = '1g';
const packAtMost = 8 * 1024 ** 3;
const limitMs = 60_000;

/** Commits to copy, and some that are there already. */
interface Copied {
  readonly commits: readonly string[];
  readonly known: readonly string[];
}

const packing = (from: GitDirs, { commits, known }: Copied, signal: AbortSignal | undefined) => ({
  args: ['pack-objects', '--revs', '--quiet', '--delta-base-offset', '--no-use-bitmap-index'],
  call: {
    signal,
    limitMs,
    input: [...commits, '--not', ...known, ''].join('\n'),
    env: {
      GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(from.objects),
      GIT_ALLOC_LIMIT: memoryAtMost,
    },
  } satisfies GitCall,
});

/** Copies what is reachable from some commits of ours as one pack. */
const sendObjects = async (
  to: GitDirs,
  from: GitDirs,
  copied: Copied,
  signal: AbortSignal | undefined,
): Promise<void> => {
  const { args, call } = packing(from, copied, signal);
  const place = join(to.objects, 'pack', 'pack');
  await requireGit('the work cannot be copied', to.git([...args, '--non-empty', place], call));
};

const failure = (answers: readonly PromiseSettledResult<GitAnswer>[]): string => {
  const said = answers.find((each) => each.status === 'fulfilled' && !each.value.ok);
  if (said?.status === 'fulfilled') return reasonIn(said.value.stderr);
  const thrown = answers.find((each) => each.status === 'rejected');
  throw thrown?.status === 'rejected' ? thrown.reason : new GitError('git failed');
};

/**
 * Copies what is reachable from some commits of others. Every object gets the name that its content
 * has, and all that it names must be there: else nothing of them is taken.
 */
const receiveObjects = async (
  to: GitDirs,
  from: GitDirs,
  copied: Copied,
  signal: AbortSignal | undefined,
): Promise<void> => {
  const broken = new AbortController();
  const both = signal === undefined ? broken.signal : AbortSignal.any([signal, broken.signal]);
  const { args, call } = packing(from, copied, both);
  const pack = new PassThrough();
  const sent = to.git([...args, '--stdout'], { ...call, output: pack });
  const taken = to
    .git(['index-pack', '--stdin', '--strict', `--max-input-size=${packAtMost}`], {
      signal,
      limitMs,
      input: pack,
    })
    .finally(() => broken.abort(new Error('the pack was not taken')));
  const answers = await Promise.allSettled([sent, taken]);
  if (answers[1].status === 'fulfilled' && answers[1].value.ok) return;
  throw new GitError(`the work cannot be taken: ${failure(answers)}`);
};

/** True when all that the commit reaches is there. */
const isWhole = async (
  { git }: GitDirs,
  commit: string,
  known: readonly string[],
  signal: AbortSignal | undefined,
): Promise<boolean> => {
  const input = [commit, '--not', ...known, ''].join('\n');
  return (await git(['rev-list', '--objects', '--quiet', '--stdin'], { input, signal })).ok;
};

/** A commit of others. @throws GitError when its content has another name */
const foreignCommit = async (
  from: GitDirs,
  commit: string,
  signal: AbortSignal | undefined,
): Promise<string> => {
  const env = { GIT_ALLOC_LIMIT: memoryAtMost };
  const content = await commitText(from, commit, { signal, limitMs, env });
  const name = createHash(from.repository.format)
    .update(`commit ${content.length}\0`)
    .update(content)
    .digest('hex');
  if (name === commit) return content.toString();
  throw new GitError(`the object ${commit} of the common repository is not what its name says`);
};

const looseAtMost = 200;
const packedAtMost = 16 * 1024 * 1024;
const mostBranches = 10_000;
const objectName = /^([0-9a-f]{40}|[0-9a-f]{64})\n?$/;

const looseTip = async (top: string, ref: string): Promise<string | null> => {
  const text = await plainText(join(top, ref), looseAtMost);
  if (text === null) return null;
  const [, tip] = objectName.exec(text) ?? [];
  if (tip !== undefined) return tip;
  throw new GitError(`${join(top, ref)} names no commit; nothing was read or written there`);
};

const packedTips = async (top: string): Promise<ReadonlyMap<string, string>> => {
  const text = (await plainText(join(top, 'packed-refs'), packedAtMost)) ?? '';
  return new Map(
    text.split('\n').flatMap((line): readonly [string, string][] => {
      const [, tip, ref] = /^([0-9a-f]+) (refs\/\S+)$/.exec(line) ?? [];
      return tip === undefined || ref === undefined ? [] : [[ref, tip]];
    }),
  );
};

/**
 * The commit of a branch in a repository that others write to. Git would wait for a pipe there, and
 * follow a link. @throws GitError when it is no plain file, or large, or names no commit
 */
const sharedTip = async (top: string, name: string): Promise<string | null> => {
  const ref = `refs/heads/${name}`;
  await requirePlainWay(top, ref);
  // Both are read, since git reads both.
  const packed = await packedTips(top);
  return (await looseTip(top, ref)) ?? packed.get(ref) ?? null;
};

async function* looseBranches(top: string, folder: string): AsyncGenerator<string> {
  for await (const entry of plainEntries(join(top, folder))) {
    const ref = `${folder}/${entry.name}`;
    if (ref === 'refs/heads/agent' || ref.endsWith('.lock')) continue;
    if (entry.isDirectory()) yield* looseBranches(top, ref);
    else yield ref;
  }
}

/** The commits of people's branches there. Those of agents are thousands. */
const sharedTipsOfPeople = async (top: string): Promise<readonly string[]> => {
  const tips = new Map(await packedTips(top));
  let count = 0;
  for await (const ref of looseBranches(top, 'refs/heads')) {
    count += 1;
    if (count > mostBranches)
      throw new GitError(`${join(top, 'refs/heads')} has more than ${mostBranches} branches`);
    const tip = await looseTip(top, ref);
    if (tip !== null) tips.set(ref, tip);
  }
  return [...tips].flatMap(([ref, tip]) =>
    ref.startsWith('refs/heads/') && !ref.startsWith('refs/heads/agent/') ? [tip] : [],
  );
};

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
