import { realpath } from 'node:fs/promises';
import { createMutex } from '../process/serial-queue.ts';
import type { Workspace } from './port.ts';

export interface SharedOptions {
  readonly projectRoot: string;
  /** Why it is not a worktree, although that was wished; then one attempt at a time changes files. */
  readonly fallback?: string | undefined;
}

/** Every attempt works in the project folder itself. @throws a system error when the folder does not exist. */
export const createSharedWorkspace = ({ projectRoot, fallback }: SharedOptions): Workspace => {
  const mutex = createMutex();
  return {
    mode: 'shared',
    describe: () =>
      fallback === undefined
        ? 'the project folder, shared by all attempts'
        : `the project folder, one writer at a time (${fallback})`,
    open: async () => ({ root: await realpath(projectRoot), readable: [], git: null, notes: [], conflicts: [] }),
    // What a command made is told apart from what another one made, and no folder is swapped while one is begun.
    alone: mutex,
    save: async () => null,
    sweep: async () => [],
    merge: async () => ({ status: 'nothing' }),
    diff: async () => null,
  };
};
