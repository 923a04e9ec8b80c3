import { join } from 'node:path';
import { removeFolder } from './attempt-folder.ts';
import { createBranches } from './branches.ts';
import { createRemovals } from './removals.ts';
import { createStores } from './stores.ts';
import { type AttemptPlaces, createWorkRecords } from './work-records.ts';

export interface WorktreeOptions {
  /** Where git is. */
  readonly program: string;
  readonly projectRoot: string;
  /** Where the worktrees and their records are, outside the project. */
  readonly folder: string;
  /** What is copied into every worktree although git does not know it, such as `node_modules`; relative to the project. */
  readonly copies: readonly string[];
  /** Filters that the user allows by name when work is merged. */
  readonly filters: readonly string[];
  /** Whether a sandbox mounts the git directory of an attempt into its folder. */
  readonly sandboxed: boolean;
  readonly description: string;
}

/** What opening, saving and merging work share: where things are, and what is known of each attempt. */
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
    /** What cannot be removed now is tried, and told, by the next sweep. */
    giveBack: (places: AttemptPlaces): Promise<void> => removeFolder(places, removals).catch(() => undefined),
  };
};

export type WorkParts = ReturnType<typeof createWorkParts>;
