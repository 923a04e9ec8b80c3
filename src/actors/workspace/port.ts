import type { StartConflict } from '../../machines/agent-context.ts';
import type { AttemptInput, TaskId } from '../../machines/task.ts';
import type { SerialQueue } from '../process/serial-queue.ts';

/** The folder that an attempt works in. */
export interface OpenWorkspace {
  /** Absolute, symlinks resolved. */
  readonly root: string;
  /** Further paths that its commands may read: the repository, for `git log` and `git diff`. */
  readonly readable: readonly string[];
  /**
   * The git directory of its own git, which ours never looks at: where it is, and where a sandbox mounts it. Null where
   * there is none.
   */
  readonly git: { readonly dir: string; readonly at: string } | null;
  /** Sentences for the agent about its folder. */
  readonly notes: readonly string[];
  /** Work that it depends on and does not have; the same each time that it is opened. */
  readonly conflicts: readonly StartConflict[];
}

/** The changes of an attempt, on a branch that we never remove. */
export interface SavedWork {
  readonly branch: string;
  /** The commit that it began with. */
  readonly base: string;
  readonly commit: string;
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
  /** Sentences about files that were not saved. */
  readonly notes: readonly string[];
}

export const mergeModes = ['none', 'ff', 'squash'] as const;
/** How work comes into the project's branch: by hand, by fast-forward, or as one commit. */
export type MergeMode = (typeof mergeModes)[number];

export const filterNames = ['lfs'] as const;
/** A filter of git that a user can allow by name. */
export type FilterName = (typeof filterNames)[number];

/** `conflict` says why nothing was changed, and in which files. */
export type Merged =
  | { readonly status: 'merged'; readonly commit: string; readonly into: string }
  | { readonly status: 'nothing' }
  | { readonly status: 'conflict'; readonly branch: string; readonly why: string; readonly files: readonly string[] };

export interface Changes {
  readonly attempt: number;
  readonly patch: string;
  /** Changed paths that other programs run or trust (`obeyedIn`), sorted. */
  readonly guarded: readonly string[];
}

/** Gives each attempt a folder to work in. Opening the same attempt again gives the same folder. */
export interface Workspace {
  readonly mode: 'shared' | 'worktree';
  /** For people: what agents work in, and why when that is not what was wished. */
  describe(): string;
  /**
   * `after` are the tasks whose work it builds on. When the signal is aborted it rejects and leaves nothing new behind.
   * @throws an error whose message may be shown
   */
  open(attempt: AttemptInput, after?: readonly TaskId[], signal?: AbortSignal): Promise<OpenWorkspace>;
  /** Runs what changes files: alone, where several attempts share one folder that cannot be told apart. */
  readonly alone: SerialQueue;
  /**
   * Keeps what the attempt changed and gives its folder up; nothing of the attempt may run any more. Saving again gives
   * the same; the last word counts on whether it is complete: other work is never taken up into the folder of a later task.
   * @returns null when it changed nothing, or works in the project's own folder
   * @throws when it could not be kept: then the folder stays
   */
  save(attempt: AttemptInput, title: string, isComplete?: boolean): Promise<SavedWork | null>;
  /** Sentences about files of an attempt that were not saved. */
  leftOut(taskId: TaskId, attempt: number): Promise<readonly string[]>;
  /** Saves what is left of attempts that are over, which could not be saved when they ended. @returns what still cannot be */
  sweep(isOver: (taskId: TaskId, attempt: number) => boolean): Promise<readonly string[]>;
  /**
   * Brings the saved work of an attempt into the project's own branch, once that has the work of other tasks that the attempt
   * began with. Merging again gives `nothing`. Once the signal is
   * aborted the branch is not moved any more: it rejects.
   */
  merge(taskId: TaskId, attempt: number, mode: MergeMode, title: string, signal?: AbortSignal): Promise<Merged>;
  /** The changes of an attempt until now; null when there is no such attempt. */
  diff(taskId: TaskId, attempt: number | null): Promise<Changes | null>;
}
