import { createGit } from './git.ts';
import type { Workspace } from './port.ts';
import { findRepository } from './repository.ts';
import { createSharedWorkspace } from './shared.ts';
import { createWorktreeWorkspace } from './worktree.ts';

export interface WorkspaceOptions {
  readonly mode: 'worktree' | 'shared';
  readonly projectRoot: string;
  readonly folder: string;
  readonly copies: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Worktrees where the project is in git, else the project's own folder with one writer at a time. */
export const chooseWorkspace = async ({ mode, environment, ...options }: WorkspaceOptions): Promise<Workspace> => {
  const { projectRoot } = options;
  if (mode === 'shared') return createSharedWorkspace({ projectRoot });
  const found = await findRepository(createGit(environment), projectRoot);
  return 'reason' in found
    ? createSharedWorkspace({ projectRoot, fallback: found.reason })
    : createWorktreeWorkspace({ ...options, repository: found.repository });
};
