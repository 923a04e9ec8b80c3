import { randomUUID } from 'node:crypto';
import { mkdir, readdir, realpath, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { createSerialQueue } from '../../process/serial-queue.ts';
import { isPresent, objectStore } from '../git/plain.ts';

import type { CommandFolder, Workspace } from '../port.ts';
import { makeFolder, projectFolder } from './attempt-folder.ts';
import type { RepositoryAtHead } from './stores.ts';
import type { WorkParts } from './work-parts.ts';

const usersFiles = 'users-files';

/** As `InCommit` of the port; null: the project's own commit. */
type InAnyCommit = <Result>(
  commit: string | null,
  work: (folder: CommandFolder) => Promise<Result>,
  signal: AbortSignal,
) => Promise<Result>;

/**
 * One at a time, in one place: what a crash leaves is replaced by the next one. `name`: no branch of an
 * attempt has it, since nothing is ever saved from here.
 */
export const createInCommit = (
  {
    options: { folder, projectRoot, copies, sandboxed },
    stores,
    removals,
    release,
  }: Pick<WorkParts, 'options' | 'stores' | 'removals' | 'release'>,
  name: 'users-commit' | 'candidate',
): InAnyCommit => {
  const inTurn = createSerialQueue();
  const places = {
    top: join(folder, name),
    agentGit: join(folder, 'git', name),
    index: join(folder, 'git', `${name}.index`),
  };
  return (commit, work, signal) =>
    inTurn(
      async () => {
        try {
          const opened = await stores.begin(async ({ dirs, head }) => {
            await makeFolder(dirs, places, {
              start: commit ?? head,
              head,
              branch: name,
              carried: null,
              instead: [],
              isMounted: sandboxed,
              projectRoot,
              copies,
              removals,
              signal,
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

const keptCommits = 3;
/** An attempt may use a folder for as long. */
const keptMs = 24 * 3_600_000;

const removeUnused = async (folder: string): Promise<void> => {
  const found = await Promise.all(
    (await readdir(folder)).map(async (name) => ({
      path: join(folder, name),
      at: (await stat(join(folder, name))).mtimeMs,
    })),
  );
  const old = found.sort((one, other) => other.at - one.at).slice(keptCommits);
  for (const { path, at } of old)
    if (Date.now() - at > keptMs) await rm(path, { recursive: true, force: true });
};

/** One folder for each commit, made when it is first needed; outside every folder of an agent. */
export const createUsersFiles = ({
  options: { folder, projectRoot, copies },
  stores,
  removals,
}: Pick<WorkParts, 'options' | 'stores' | 'removals'>): NonNullable<Workspace['usersFiles']> => {
  const inTurn = createSerialQueue();
  const kept = join(folder, usersFiles);
  const make = async ({ dirs, head }: RepositoryAtHead, whole: string): Promise<void> => {
    const top = join(kept, `new-${randomUUID()}`);
    const name = `${usersFiles}-${randomUUID()}`;
    const agentGit = join(folder, 'git', name);
    const index = join(folder, 'git', `${name}.index`);
    try {
      await makeFolder(
        dirs,
        { top, agentGit, index },
        {
          start: head,
          head: null,
          branch: usersFiles,
          carried: null,
          instead: [],
          isMounted: false,
          projectRoot,
          copies,
          removals,
          signal: undefined,
        },
      );
      await rm(join(top, '.git'), { recursive: true, force: true });
      await rename(top, whole);
    } finally {
      for (const path of [top, agentGit, index]) await rm(path, { recursive: true, force: true });
    }
  };
  return () =>
    inTurn(() =>
      stores.begin(async (atHead) => {
        const whole = join(kept, atHead.head);
        await mkdir(kept, { recursive: true, mode: 0o700 });
        if (!(await isPresent(whole))) await make(atHead, whole);
        await utimes(whole, new Date(), new Date());
        await removeUnused(kept).catch(() => {});
        return projectFolder(await realpath(whole), atHead.dirs.repository.prefix);
      }),
    );
};
