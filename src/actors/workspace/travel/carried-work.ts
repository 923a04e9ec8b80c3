import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { commitTree, findObjects } from '../git/commits.ts';
import { GitError } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { workRecordSchema } from '../git/work-records.ts';
import type { KeyedAttempt } from '../port.ts';

const carriedSchema = z.strictObject({
  /** The step after which the folder was like this; null: the attempt is over. */
  step: z.string().nullable(),
  /** Names the process that wrote it, so that no two write the same commit. */
  by: z.string(),
  /** The folder. */
  tree: z.string(),
  record: workRecordSchema,
});

/** One commit of the common repository says this of an attempt. */
export type CarriedWork = z.infer<typeof carriedSchema>;

/** The branch of an attempt in the common repository. Its end says which attempt of this number. */
export const carriedName = ({ taskId, attempt, key }: KeyedAttempt): string =>
  `agent/${taskId}/${attempt}.${createHash('sha256').update(`name ${key}`).digest('hex').slice(0, 12)}`;

const proofOf = (key: string, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest();

/** Makes a commit on top of the work, or of where it began. Whoever has the key knows who made it. */
export const commitCarried = (
  dirs: GitDirs,
  { key }: KeyedAttempt,
  carried: CarriedWork,
  signal?: AbortSignal,
): Promise<string> => {
  const { tree, record } = carried;
  const { task_id, attempt, role, commit, base } = record;
  const text = JSON.stringify(carried);
  const message = `Attempt ${attempt} of ${task_id}, for other servers\n\n${proofOf(key, text).toString('hex')} ${text}\n`;
  return commitTree(dirs, { tree, parents: [commit ?? base], message, role }, signal);
};

const lastLine = /\n([0-9a-f]{64}) (\{[^\n]*\})\n*$/;

/** @throws GitError when no server wrote this commit for this attempt */
export const readCarried = (keyed: KeyedAttempt, commit: string): CarriedWork => {
  const [, proof = '', text = ''] = lastLine.exec(commit) ?? [];
  const isProven =
    proof !== '' && timingSafeEqual(Buffer.from(proof, 'hex'), proofOf(keyed.key, text));
  if (!isProven)
    throw new GitError(
      `the branch ${carriedName(keyed)} of the common repository does not hold what a server wrote there: somebody changed it; see who can write there, and delete it with git branch -D`,
    );
  const parsed = carriedSchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new GitError(
    `the branch ${carriedName(keyed)} of the common repository was written by a server of another version`,
  );
};

export const treeOf = async (dirs: GitDirs, commit: string): Promise<string> => {
  const [tree] = await findObjects(dirs, [`${commit}^{tree}`]);
  if (tree !== null) return tree;
  throw new GitError(`the commit ${commit} is not there`);
};
