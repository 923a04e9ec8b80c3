import { z } from 'zod';
import { commitTree, findObjects } from '../commits.ts';
import { GitError, requireGit } from '../git.ts';
import type { GitDirs } from '../git-dirs.ts';
import { type WorkRecord, workRecordSchema } from '../work-records.ts';

const carriedSchema = z.strictObject({
  /** The step after which the folder was like this; null: the attempt is over. */
  step: z.string().nullable(),
  /** Names the process that wrote it, so that no two write the same commit. */
  by: z.string(),
  record: workRecordSchema,
});

/** One commit of the common repository says this of an attempt; its tree is the folder. */
export type CarriedWork = z.infer<typeof carriedSchema>;

/** The branch of an attempt in the repository that all servers reach. */
export const carriedName = ({ task_id, attempt }: Pick<WorkRecord, 'task_id' | 'attempt'>) =>
  `agent/${task_id}/${attempt}`;

const objectName = /^[0-9a-f]{40}([0-9a-f]{24})?$/;
const branchOfAttempt = /^agent\/[\w+.-]+\/\d+(-\d+)?$/;

const isSound = ({ record }: CarriedWork): boolean =>
  branchOfAttempt.test(record.branch) &&
  record.verified === null &&
  [
    ...[record.base, record.head, record.commit, record.first_base, record.merged],
    ...record.includes.map(({ commit }) => commit),
    ...record.withheld.map(({ to }) => to?.oid ?? null),
  ].every((name) => name === null || objectName.test(name));

const parsedOrNull = (line: string): unknown => {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
};

/** Makes a commit on top of the work, or of where it began. */
export const commitCarried = (
  dirs: GitDirs,
  tree: string,
  carried: CarriedWork,
  signal?: AbortSignal,
): Promise<string> => {
  const { task_id, attempt, role, commit, base } = carried.record;
  const message = `Attempt ${attempt} of ${task_id}, for other servers\n\n${JSON.stringify(carried)}\n`;
  return commitTree(dirs, { tree, parents: [commit ?? base], message, role }, signal);
};

/** @returns null when the commit is none of ours @throws GitError when it cannot be read */
export const readCarried = async (
  { git }: GitDirs,
  { name, tip }: { readonly name: string; readonly tip: string },
): Promise<CarriedWork | null> => {
  const text = (await requireGit('the work cannot be read', git(['cat-file', 'commit', tip])))
    .toString()
    .trimEnd();
  const line = text.slice(text.lastIndexOf('\n') + 1);
  if (!line.startsWith('{')) return null;
  const parsed = carriedSchema.safeParse(parsedOrNull(line));
  if (!parsed.success || !isSound(parsed.data) || carriedName(parsed.data.record) !== name)
    throw new GitError(
      `the branch ${name} of the common repository does not hold what a server wrote there: another version wrote it, or somebody changed it`,
    );
  return parsed.data;
};

export const treeOf = async (dirs: GitDirs, commit: string): Promise<string> => {
  const [tree] = await findObjects(dirs, [`${commit}^{tree}`]);
  if (tree !== null) return tree;
  throw new GitError(`the commit ${commit} is not there`);
};
