import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { createSerialQueue } from '../process/serial-queue.ts';
import { makeFolder, projectFolder } from './attempt-folder.ts';
import { objectStore } from './object-store.ts';
import type { InUsersCommit } from './port.ts';
import type { WorkParts } from './work-parts.ts';

/** No name of a branch of an attempt: nothing is ever saved from here. */
const noBranch = 'users-commit';

/** One at a time, in one place: what a crash leaves is replaced by the next one. */
export const createInUsersCommit = ({
  options: { folder, projectRoot, copies, sandboxed },
  stores,
  removals,
  release,
}: Pick<WorkParts, 'options' | 'stores' | 'removals' | 'release'>): InUsersCommit => {
  const inTurn = createSerialQueue();
  const places = {
    top: join(folder, noBranch),
    agentGit: join(folder, 'git', noBranch),
    index: join(folder, 'git', `${noBranch}.index`),
  };
  return (work, signal) =>
    inTurn(
      async () => {
        try {
          const opened = await stores.begin(async ({ dirs, head }) => {
            await makeFolder(dirs, places, {
              ...{
                start: head,
                branch: noBranch,
                carried: null,
                instead: [],
                isMounted: sandboxed,
              },
              ...{ projectRoot, copies, removals, signal },
            });
            const top = await realpath(places.top);
            return {
              root: projectFolder(top, dirs.repository.prefix),
              readable: [await objectStore(dirs.repository.commonDir)],
              git: { dir: places.agentGit, at: join(top, '.git') },
            };
          }, signal);
          signal.throwIfAborted();
          return await work(opened);
        } finally {
          await release(places);
        }
      },
      { signal },
    );
};
