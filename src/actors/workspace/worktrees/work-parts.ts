import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../machines/message-of.ts';
import type { AttemptInput } from '../../../machines/task.ts';
import { commitOf, findObjects, moveBranch } from '../git/commits.ts';
import { GitError, reasonIn } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { type AttemptPlaces, createWorkRecords, type WorkRecord } from '../git/work-records.ts';
import { createRemovals } from '../saving/snapshots.ts';
import type { CommonRepository } from '../travel/transport.ts';
import { removeFolder } from './attempt-folder.ts';
import { createStores } from './stores.ts';

const mostNames = 1_000;

/**
 * @throws GitError when no branch of an attempt could be made, with the reason: git keeps branches
 * as files, so a branch `agent` leaves no room for `agent/bd-a1/1`
 */
export const requireBranches = async (dirs: GitDirs, taskId?: string): Promise<void> => {
  const { commonDir } = dirs.repository;
  for (const folder of [join(commonDir, 'objects'), join(commonDir, 'refs')])
    await access(folder, constants.W_OK).catch((error: unknown) => {
      throw new GitError(
        `${folder} cannot be written (${messageOf(error)}); give this user the right to write in it`,
      );
    });
  const names = ['agent', ...(taskId === undefined ? [] : [`agent/${taskId}`])];
  const found = await findObjects(
    dirs,
    names.map((name) => `refs/heads/${name}`),
  );
  const taken = names.find((_, at) => found[at] !== null);
  if (taken !== undefined)
    throw new GitError(
      `its branch ${taken} leaves no room for the branches of agents (${taken}/…); run git branch -m ${taken} <another name>`,
    );
};

/** A branch of somebody else lies below the name. */
const isFolder = (stderr: string, name: string): boolean =>
  stderr.includes(`'refs/heads/${name}/`) && stderr.includes('; cannot create');

/**
 * Creates and moves the branches of attempts. It never moves a branch that it did not create: such
 * a branch may be left from a removed state folder.
 */
const createBranches = () => {
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
      if (isFolder(made.stderr, name)) continue;
      await requireBranches(dirs, taskId);
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

export interface WorktreeOptions {
  readonly program: string;
  readonly projectRoot: string;
  /** The folder of worktrees and their records, outside the project. */
  readonly folder: string;
  readonly copies: readonly string[];
  /** Ignored files that are copied into the results of a task: globs. */
  readonly keep: readonly string[];
  readonly filters: readonly string[];
  /** Where the user's git finds its configuration and keys: to sign, and to push by ssh. */
  readonly userEnv?: NodeJS.ProcessEnv;
  /** Absolute paths that the server trusts: no agent changes them. */
  readonly trusted?: () => readonly string[];
  /** True when a sandbox mounts the git directory of an attempt into its folder. */
  readonly sandboxed: boolean;
  /** Removes secrets from what is kept of the output of commands. */
  readonly redact?: (text: string) => string;
  readonly description: string;
  /** Null: no other server gets the work, and none is gotten. */
  readonly common: CommonRepository | null;
}

export const createWorkParts = (options: WorktreeOptions) => {
  const { folder } = options;
  const records = createWorkRecords(folder);
  const removals = createRemovals(folder);

  const placesOf = (taskId: string, attempt: number): AttemptPlaces => {
    const name = `${taskId}@${attempt}`;
    return {
      top: records.folderOf(taskId, attempt),
      agentGit: join(folder, 'git', name),
      index: join(folder, 'git', `${name}.index`),
    };
  };

  return {
    options,
    records,
    removals,
    stores: createStores(options),
    branches: createBranches(),
    placesOf,
    /** The next sweep tries again, and reports what it cannot remove. */
    release: (places: AttemptPlaces): Promise<void> =>
      removeFolder(places, removals).catch(() => undefined),
  };
};

export type WorkParts = ReturnType<typeof createWorkParts>;
