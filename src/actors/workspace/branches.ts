import type { AttemptInput } from '../../machines/task.ts';
import { commitOf, moveBranch } from './commits.ts';
import { GitError, reasonIn } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import type { WorkRecord } from './work-records.ts';

const mostNames = 1_000;

/**
 * Creates and moves the branches of attempts. It never moves a branch that it did not create: such
 * a branch may be left from a removed state folder.
 */
export const createBranches = () => {
  const make = async (
    dirs: GitDirs,
    { taskId, attempt }: Pick<AttemptInput, 'taskId' | 'attempt'>,
    commit: string,
  ): Promise<string> => {
    for (let n = 1; n <= mostNames; n += 1) {
      const name = `agent/${taskId}/${attempt}${n === 1 ? '' : `-${n}`}`;
      if ((await commitOf(dirs, `refs/heads/${name}`)) !== null) continue;
      const made = await moveBranch(dirs, name, commit, null);
      if (made.ok) return name;
      throw new GitError(`the branch ${name} could not be created: ${reasonIn(made.stderr)}`);
    }
    throw new GitError(
      `there are ${mostNames} branches agent/${taskId}/${attempt}-…; delete those that nobody needs`,
    );
  };
  return {
    make,
    /**
     * Moves an attempt's branch from its base. If somebody else moved it, the work gets the next
     * free name.
     */
    move: async (dirs: GitDirs, record: WorkRecord, commit: string): Promise<string> => {
      const moved = await moveBranch(dirs, record.branch, commit, record.base);
      if (moved.ok) return record.branch;
      const { task_id, attempt } = record;
      if ((await commitOf(dirs, `refs/heads/${record.branch}`)) === record.base)
        throw new GitError(`its branch could not be moved: ${reasonIn(moved.stderr)}`);
      return make(dirs, { taskId: task_id as AttemptInput['taskId'], attempt }, commit);
    },
  };
};
