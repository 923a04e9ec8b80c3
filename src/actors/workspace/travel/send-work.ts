import type { GitDirs } from '../git-dirs.ts';
import { snapshotJob } from '../snapshot-job.ts';
import { snapshotInThread } from '../snapshots.ts';
import { treeOfWork } from '../verified-work.ts';
import type { WorkParts } from '../work-parts.ts';
import type { WorkRecord } from '../work-records.ts';
import {
  type CarriedWork,
  carriedName,
  commitCarried,
  readCarried,
  treeOf,
} from './carried-work.ts';
import type { CommonRepository, WorkRef } from './transport.ts';

const heldByOther = Symbol('another server has it');

/** Moves branches of the common repository, but none that another server has. */
const createPlaces = ({ transport, server }: CommonRepository) => {
  /** The places of branches, as this server moved them last. */
  const tips = new Map<string, string>();

  /** @returns the place of a branch, or null when it is absent; `heldByOther` when another server has it */
  const placeOf = async (
    dirs: GitDirs,
    name: string,
    record: WorkRecord,
    signal: AbortSignal | undefined,
  ): Promise<string | null | typeof heldByOther> => {
    const known = tips.get(name);
    if (known !== undefined) return known;
    const ref = (await transport.bring(dirs, name, signal)).find((each) => each.name === name);
    const carried = ref === undefined ? null : await readCarried(dirs, ref);
    if (ref === undefined || carried === null) return ref?.tip ?? null;
    const { by, record: there } = carried;
    // What is over may be merged by any server.
    const isSameWork = there.closed && record.closed && there.commit === record.commit;
    return by === server || isSameWork ? ref.tip : heldByOther;
  };
  /** @returns false when another server has the branch */
  const put = async (
    dirs: GitDirs,
    record: WorkRecord,
    commit: string,
    signal?: AbortSignal,
  ): Promise<boolean> => {
    const name = carriedName(record);
    const from = await placeOf(dirs, name, record, signal);
    const isMoved =
      from !== heldByOther && (await transport.put(dirs, { name, commit, from }, signal));
    if (isMoved) tips.set(name, commit);
    else tips.delete(name);
    return isMoved;
  };
  return { tips, put };
};

/** Puts what an attempt has, or left, into the common repository. */
export const createSending = (parts: WorkParts, common: CommonRepository) => {
  const { options, placesOf } = parts;
  const { tips, put } = createPlaces(common);
  const carriedOf = (record: WorkRecord, step: string | null): CarriedWork => ({
    step,
    by: common.server,
    record: { ...record, verified: null, unsent: false },
  });

  const folderTree = async (
    dirs: GitDirs,
    record: WorkRecord,
    signal: AbortSignal | undefined,
  ): Promise<string> => {
    const places = placesOf(record.task_id, record.attempt);
    const job = await snapshotJob(dirs, record, places, options);
    const { tree } = await snapshotInThread(job, signal);
    return (await treeOfWork(dirs, record, tree)) ?? (await treeOf(dirs, record.base));
  };

  return {
    /** The folder as it is now. */
    folder: async (
      dirs: GitDirs,
      record: WorkRecord,
      step: string,
      signal: AbortSignal | undefined,
    ): Promise<boolean> => {
      const tree = await folderTree(dirs, record, signal);
      const commit = await commitCarried(dirs, tree, carriedOf(record, step), signal);
      return put(dirs, record, commit, signal);
    },
    /** The work of an attempt that is over. */
    closed: async (dirs: GitDirs, record: WorkRecord): Promise<boolean> => {
      const tree = await treeOf(dirs, record.commit ?? record.base);
      try {
        return await put(dirs, record, await commitCarried(dirs, tree, carriedOf(record, null)));
      } finally {
        tips.delete(carriedName(record));
      }
    },
    /** From now on, only this server moves the branch. @returns false when it has moved on */
    claim: async (
      dirs: GitDirs,
      { name, tip }: WorkRef,
      { step, record }: CarriedWork,
      signal: AbortSignal | undefined,
    ): Promise<boolean> => {
      tips.set(name, tip);
      const tree = await treeOf(dirs, tip);
      const commit = await commitCarried(dirs, tree, carriedOf(record, step), signal);
      return put(dirs, record, commit, signal);
    },
  };
};

export type Sending = ReturnType<typeof createSending>;
