import type { TaskId } from '../../../machines/task.ts';
import { makeFolder } from '../attempt-folder.ts';
import { commitOf } from '../commits.ts';
import { GitError } from '../git.ts';
import type { GitDirs } from '../git-dirs.ts';
import type { KeyedAttempt } from '../port.ts';
import { findWithheld } from '../start.ts';
import type { WorkParts } from '../work-parts.ts';
import type { WorkRecord } from '../work-records.ts';
import { type CarriedWork, carriedName } from './carried-work.ts';
import { type Sending, wantedOf } from './send-work.ts';
import type { CommonRepository } from './transport.ts';

/** Other servers that write at the same moment make a move fail. */
const movesAtMost = 5;

const createTakenWork = (parts: WorkParts) => {
  const { options, records, removals, branches, placesOf, release } = parts;

  /** A name for the work here: its own, unless that names something else. */
  const branchFor = async (dirs: GitDirs, record: WorkRecord, commit: string): Promise<string> => {
    const { branch, task_id, attempt } = record;
    if ((await commitOf(dirs, `refs/heads/${branch}`)) === commit) return branch;
    return branches.make(dirs, { taskId: task_id as TaskId, attempt }, commit);
  };

  const writeClosed = async (dirs: GitDirs, record: WorkRecord): Promise<void> => {
    const { commit } = record;
    const branch = commit === null ? record.branch : await branchFor(dirs, record, commit);
    await records.write({ ...record, branch });
  };

  const makeFolderOf = async (
    dirs: GitDirs,
    head: string,
    { tree, record }: CarriedWork,
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    const { task_id, attempt, base } = record;
    const places = placesOf(task_id, attempt);
    const { instead, withheld } = await findWithheld({ dirs, head: record.head ?? head }, base);
    const branch = await branchFor(dirs, record, base);
    try {
      await makeFolder(dirs, places, {
        ...{ start: base, carried: tree, branch, instead, removals, signal },
        projectRoot: options.projectRoot,
        copies: options.copies,
        isMounted: options.sandboxed,
      });
    } catch (error) {
      await release(places);
      throw error;
    }
    await records.write({ ...record, branch, withheld: [...withheld] });
  };
  return { writeClosed, makeFolderOf };
};

/** Takes from the common repository. */
export const createTaking = (
  parts: WorkParts,
  { transport, server }: CommonRepository,
  sending: Sending,
) => {
  const { records } = parts;
  const { writeClosed, makeFolderOf } = createTakenWork(parts);
  return {
    /**
     * The folder of an attempt that goes on. `makeRoom` is called before anything of it is made here.
     * @returns null when it is not there
     */
    folder: async (
      dirs: GitDirs,
      head: string,
      keyed: KeyedAttempt,
      makeRoom: () => Promise<void>,
      signal: AbortSignal | undefined,
    ): Promise<CarriedWork | null> => {
      for (let tries = 1; tries <= movesAtMost; tries += 1) {
        const [found] = await transport.bring(dirs, [wantedOf(keyed)], signal);
        if (found === undefined || found.work.record.kind !== dirs.repository.kind) return null;
        if (!(await sending.claim(dirs, keyed, found, signal))) continue;
        signal?.throwIfAborted();
        await makeRoom();
        if (found.work.record.closed) await writeClosed(dirs, found.work.record);
        else await makeFolderOf(dirs, head, found.work, signal);
        return found.work;
      }
      throw new GitError(
        `another server still writes to ${carriedName(keyed)} in the common repository`,
      );
    },
    /** The work of attempts that are over. @returns those that are not here then */
    closedWork: async (
      dirs: GitDirs,
      keyed: readonly KeyedAttempt[],
      signal: AbortSignal | undefined,
    ): Promise<readonly KeyedAttempt[]> => {
      for (const { work } of await transport.bring(dirs, keyed.map(wantedOf), signal)) {
        const { by, record } = work;
        if (!record.closed || record.kind !== dirs.repository.kind) continue;
        const { task_id, attempt, commit, merged, complete } = record;
        const here = await records.read(task_id, attempt);
        if (here !== null && (!here.closed || by === server)) continue;
        const isKnown =
          here?.commit === commit && here.merged === merged && here.complete === complete;
        if (!isKnown) await writeClosed(dirs, record);
      }
      const absent: KeyedAttempt[] = [];
      for (const each of keyed)
        if ((await records.read(each.taskId, each.attempt))?.closed !== true) absent.push(each);
      return absent;
    },
  };
};
