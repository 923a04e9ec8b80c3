import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { commitText } from '../commits.ts';
import { type GitAnswer, type GitCall, GitError, reasonIn, requireGit } from '../git.ts';
import type { GitDirs } from '../git-dirs.ts';

/** More memory at once is for nobody's objects; git streams large files. */
const memoryAtMost = '1g';
const packAtMost = 8 * 1024 ** 3;
const limitMs = 60_000;

/** Commits to copy, and some that are there already. */
export interface Copied {
  readonly commits: readonly string[];
  readonly known: readonly string[];
}

const packing = (from: GitDirs, { commits, known }: Copied, signal: AbortSignal | undefined) => ({
  args: ['pack-objects', '--revs', '--quiet', '--delta-base-offset', '--no-use-bitmap-index'],
  call: {
    ...{ signal, limitMs, input: [...commits, '--not', ...known, ''].join('\n') },
    env: {
      GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(from.objects),
      GIT_ALLOC_LIMIT: memoryAtMost,
    },
  } satisfies GitCall,
});

/** Copies what is reachable from some commits of ours as one pack. */
export const sendObjects = async (
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
export const receiveObjects = async (
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
      ...{ signal, limitMs, input: pack },
    })
    .finally(() => broken.abort(new Error('the pack was not taken')));
  const answers = await Promise.allSettled([sent, taken]);
  if (answers[1].status === 'fulfilled' && answers[1].value.ok) return;
  throw new GitError(`the work cannot be taken: ${failure(answers)}`);
};

/** True when all that the commit reaches is there. */
export const isWhole = async (
  { git }: GitDirs,
  commit: string,
  known: readonly string[],
  signal: AbortSignal | undefined,
): Promise<boolean> => {
  const input = [commit, '--not', ...known, ''].join('\n');
  return (await git(['rev-list', '--objects', '--quiet', '--stdin'], { input, signal })).ok;
};

/** A commit of others. @throws GitError when its content has another name */
export const foreignCommit = async (
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
