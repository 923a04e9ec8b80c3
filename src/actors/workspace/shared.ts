import { realpath } from 'node:fs/promises';
import type { Workspace } from './port.ts';

/** Every attempt works in the project folder itself. @throws a system error when the folder does not exist. */
export const createSharedWorkspace = ({ projectRoot }: { readonly projectRoot: string }): Workspace => ({
  mode: 'shared',
  open: async () => ({ root: await realpath(projectRoot) }),
});
