import { join } from 'node:path';
import { type AttemptPlaces, createWorkRecords } from '../git/work-records.ts';
import { createRemovals } from '../saving/removals.ts';
import type { CommonRepository } from '../travel/transport.ts';
import { removeFolder } from './attempt-folder.ts';
import { createBranches } from './branches.ts';
import { createStores } from './stores.ts';

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
  readonly userEnv?: NodeJS.ProcessEnv | undefined;
  /** Absolute paths that the server trusts: no agent changes them. */
  readonly trusted?: (() => readonly string[]) | undefined;
  /** True when a sandbox mounts the git directory of an attempt into its folder. */
  readonly sandboxed: boolean;
  /** Removes secrets from what is kept of the output of commands. */
  readonly redact?: ((text: string) => string) | undefined;
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
