import type { AttemptInput } from '../../machines/task-context.ts';

/** The folder that an attempt works in. */
export interface OpenWorkspace {
  /** Absolute, symlinks resolved. */
  readonly root: string;
}

/** Gives each attempt a folder to work in. Opening the same attempt again gives the same folder. */
export interface Workspace {
  readonly mode: 'shared' | 'worktree';
  open(attempt: AttemptInput): Promise<OpenWorkspace>;
}
