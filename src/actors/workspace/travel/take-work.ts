import type { TaskId } from '../../../machines/task.ts';
import { makeFolder } from '../attempt-folder.ts';
import { commitOf } from '../commits.ts';
import { GitError } from '../git.ts';
import type { GitDirs } from '../git-dirs.ts';
import { findWithheld } from '../start.ts';
import type { WorkParts } from '../work-parts.ts';
import type { WorkRecord } from '../work-records.ts';
import { type CarriedWork, carriedName, readCarried } from './carried-work.ts';
import type { Sending } from './send-work.ts';
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
    { record }: CarriedWork,
    tip: string,
    signal: AbortSignal | undefined,
  ): Promise<void> => {
    const { task_id, attempt, base } = record;
    const places = placesOf(task_id, attempt);
    const { instead, withheld } = await findWithheld({ dirs, head: record.head ?? head }, base);
    const branch = await branchFor(dirs, record, base);
    try {
      await makeFolder(dirs, places, {
        ...{ start: base, carried: tip, branch, instead, removals, signal },
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
      key: Pick<WorkRecord, 'task_id' | 'attempt'>,
      makeRoom: () => Promise<void>,
      signal: AbortSignal | undefined,
    ): Promise<CarriedWork | null> => {
      const name = carriedName(key);
      for (let tries = 1; tries <= movesAtMost; tries += 1) {
        const ref = (await transport.bring(dirs, name, signal)).find((each) => each.name === name);
        const carried = ref === undefined ? null : await readCarried(dirs, ref);
        if (ref === undefined || carried === null) return null;
        if (carried.record.kind !== dirs.repository.kind) return null;
        if (!(await sending.claim(dirs, ref, carried, signal))) continue;
        await makeRoom();
        if (carried.record.closed) await writeClosed(dirs, carried.record);
        else await makeFolderOf(dirs, head, carried, ref.tip, signal);
        return carried;
      }
      throw new GitError(`another server still writes to ${name} in the common repository`);
    },
    /** The work of all attempts of a task that are over. */
    closedWork: async (
      dirs: GitDirs,
      taskId: TaskId,
      signal: AbortSignal | undefined,
    ): Promise<void> => {
      for (const ref of await transport.bring(dirs, `agent/${taskId}`, signal)) {
        const carried = await readCarried(dirs, ref);
        if (carried === null || !carried.record.closed) continue;
        if (carried.record.kind !== dirs.repository.kind) continue;
        const { attempt, commit, merged, complete } = carried.record;
        const here = await records.read(taskId, attempt);
        if (here !== null && (!here.closed || carried.by === server)) continue;
        const isKnown =
          here?.commit === commit && here.merged === merged && here.complete === complete;
        if (!isKnown) await writeClosed(dirs, carried.record);
      }
    },
  };
};
