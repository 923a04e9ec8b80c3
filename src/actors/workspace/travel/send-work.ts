import type { GitDirs } from '../git-dirs.ts';
import type { KeyedAttempt } from '../port.ts';
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
import type { BroughtRef, CommonRepository, WantedRef } from './transport.ts';

export const wantedOf = (keyed: KeyedAttempt): WantedRef<CarriedWork> => ({
  name: carriedName(keyed),
  read: (commit) => readCarried(keyed, commit),
});

const heldByOther = Symbol('another server has it');

/** Moves branches of the common repository, but none that another server has. */
const createPlaces = ({ transport, server }: CommonRepository) => {
  /** The places of branches, as this server moved them last. */
  const tips = new Map<string, string>();

  /** @returns the place of a branch, or null when it is absent; `heldByOther` when another server has it */
  const placeOf = async (
    dirs: GitDirs,
    keyed: KeyedAttempt,
    record: WorkRecord,
    signal: AbortSignal | undefined,
  ): Promise<string | null | typeof heldByOther> => {
    const known = tips.get(carriedName(keyed));
    if (known !== undefined) return known;
    const [found] = await transport.bring(dirs, [wantedOf(keyed)], signal);
    if (found === undefined) return null;
    const { by, record: there } = found.work;
    // What is over may be merged by any server.
    const isSameWork = there.closed && record.closed && there.commit === record.commit;
    return by === server || isSameWork ? found.tip : heldByOther;
  };
  /** @returns false when another server has the branch */
  const put = async (
    dirs: GitDirs,
    keyed: KeyedAttempt,
    carried: CarriedWork,
    signal?: AbortSignal,
  ): Promise<boolean> => {
    const commit = await commitCarried(dirs, keyed, carried, signal);
    const name = carriedName(keyed);
    const from = await placeOf(dirs, keyed, carried.record, signal);
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
  const carriedOf = (record: WorkRecord, tree: string, step: string | null): CarriedWork => ({
    ...{ step, by: common.server, tree },
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
      keyed: KeyedAttempt,
      record: WorkRecord,
      step: string,
      signal: AbortSignal | undefined,
    ): Promise<boolean> => {
      const tree = await folderTree(dirs, record, signal);
      return put(dirs, keyed, carriedOf(record, tree, step), signal);
    },
    /** The work of an attempt that is over. */
    closed: async (
      dirs: GitDirs,
      keyed: KeyedAttempt,
      record: WorkRecord,
      signal: AbortSignal | undefined,
    ): Promise<boolean> => {
      const tree = await treeOf(dirs, record.commit ?? record.base);
      try {
        return await put(dirs, keyed, carriedOf(record, tree, null), signal);
      } finally {
        tips.delete(carriedName(keyed));
      }
    },
    /** From now on, only this server moves the branch. @returns false when it has moved on */
    claim: (
      dirs: GitDirs,
      keyed: KeyedAttempt,
      { tip, work: { step, tree, record } }: BroughtRef<CarriedWork>,
      signal: AbortSignal | undefined,
    ): Promise<boolean> => {
      tips.set(carriedName(keyed), tip);
      return put(dirs, keyed, carriedOf(record, tree, step), signal);
    },
  };
};

export type Sending = ReturnType<typeof createSending>;
