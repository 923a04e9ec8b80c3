import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { messageOf } from '../../../machines/message-of.ts';
import type { TaskId } from '../../../machines/task.ts';
import { withDeadline } from '../../process/deadline.ts';
import { createSerialQueue, type SerialQueue } from '../../process/serial-queue.ts';
import { commitOf, commitTree, findObjects, moveBranch } from '../git/commits.ts';
import { GitError } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { type WorkRecord, workRecordSchema } from '../git/work-records.ts';
import type { KeyedAttempt, NamedAttempt, WorkTravel } from '../port.ts';
import { snapshotJob } from '../saving/snapshot-job.ts';
import { snapshotInThread } from '../saving/snapshots.ts';
import { makeFolder } from '../worktrees/attempt-folder.ts';
import { findWithheld } from '../worktrees/start.ts';
import { treeOfWork } from '../worktrees/verified-work.ts';
import type { WorkParts } from '../worktrees/work-parts.ts';
import type { BroughtRef, CommonRepository, WantedRef, WorkTransport } from './transport.ts';

const carriedSchema = z.strictObject({
  /** The step after which the folder was like this; null: the attempt is over. */
  step: z.string().nullable(),
  /** Names the process that wrote it, so that no two write the same commit. */
  by: z.string(),
  /** The folder. */
  tree: z.string(),
  record: workRecordSchema,
});

/** One commit of the common repository says this of an attempt. */
type CarriedWork = z.infer<typeof carriedSchema>;

/** The branch of an attempt in the common repository. Its end says which attempt of this number. */
export const carriedName = ({ taskId, attempt, key }: KeyedAttempt): string =>
  `agent/${taskId}/${attempt}.${createHash('sha256').update(`name ${key}`).digest('hex').slice(0, 12)}`;

const proofOf = (key: string, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest();

/** Makes a commit on top of the work, or of where it began. Whoever has the key knows who made it. */
const commitCarried = (
  dirs: GitDirs,
  { key }: KeyedAttempt,
  carried: CarriedWork,
  signal?: AbortSignal,
): Promise<string> => {
  const { tree, record } = carried;
  const { task_id, attempt, role, commit, base } = record;
  const text = JSON.stringify(carried);
  const message = `Attempt ${attempt} of ${task_id}, for other servers\n\n${proofOf(key, text).toString('hex')} ${text}\n`;
  return commitTree(dirs, { tree, parents: [commit ?? base], message, role }, signal);
};

const lastLine = /\n([0-9a-f]{64}) (\{[^\n]*\})\n*$/;

/** @throws GitError when no server wrote this commit for this attempt */
const readCarried = (keyed: KeyedAttempt, commit: string): CarriedWork => {
  const [, proof = '', text = ''] = lastLine.exec(commit) ?? [];
  const isProven =
    proof !== '' && timingSafeEqual(Buffer.from(proof, 'hex'), proofOf(keyed.key, text));
  if (!isProven)
    throw new GitError(
      `the branch ${carriedName(keyed)} of the common repository does not hold what a server wrote there: somebody changed it; see who can write there, and delete it with git branch -D`,
    );
  const parsed = carriedSchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new GitError(
    `the branch ${carriedName(keyed)} of the common repository was written by a server of another version`,
  );
};

export const treeOf = async (dirs: GitDirs, commit: string): Promise<string> => {
  const [tree] = await findObjects(dirs, [`${commit}^{tree}`]);
  if (tree !== null) return tree;
  throw new GitError(`the commit ${commit} is not there`);
};

const wantedOf = (keyed: KeyedAttempt): WantedRef<CarriedWork> => ({
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
const createSending = (parts: WorkParts, common: CommonRepository) => {
  const { options, placesOf } = parts;
  const { tips, put } = createPlaces(common);
  const carriedOf = (record: WorkRecord, tree: string, step: string | null): CarriedWork => ({
    step,
    by: common.server,
    tree,
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

type Sending = ReturnType<typeof createSending>;

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
        start: base,
        head: record.head,
        carried: tree,
        branch,
        instead,
        removals,
        signal,
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

type Notes = readonly string[];

/** Forgets an attempt that others went on with; its work here stays on a branch. */
const createForgetting =
  (
    { records, placesOf, release, stores }: WorkParts,
    save: (attempt: NamedAttempt, title: string) => Promise<unknown>,
  ) =>
  async (attempt: NamedAttempt): Promise<Notes> => {
    const { taskId, attempt: number } = attempt;
    const before = await records.read(taskId, number);
    if (before === null) return [];
    if (!before.closed)
      await save(attempt, `Work of ${taskId} on a server that stopped`).catch(() => undefined);
    const kept = await records.read(taskId, number);
    await release(placesOf(taskId, number));
    await records.remove(taskId, number);
    if (kept?.closed === true && kept.commit !== null && !before.closed)
      return [`What this server had of it is on the branch ${kept.branch}.`];
    if (!before.closed)
      await stores
        .use(before.kind, (dirs) => moveBranch(dirs, before.branch, null, before.base))
        .catch(() => undefined);
    return [];
  };

/** Takes from the common repository. */
const createTaking = (
  parts: WorkParts,
  { transport, server }: CommonRepository,
  sending: Sending,
  forgetOwn: ReturnType<typeof createForgetting>,
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
        if (here !== null && by === server) continue;
        // It went on and ended elsewhere: what this server has of it is old.
        if (here?.closed === false) await forgetOwn({ taskId: task_id as TaskId, attempt });
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

const askMs = 15_000;

/** Work of attempts on other servers (ADR 0118). `common` null: nothing of it is there. */
export const createWorkTravel = (
  parts: WorkParts,
  common: CommonRepository | null,
  save: (attempt: NamedAttempt, title: string) => Promise<unknown>,
  ofAttempt: (attempt: NamedAttempt, work: () => Promise<Notes>) => Promise<Notes>,
): WorkTravel => {
  const { records, stores } = parts;
  const forget = createForgetting(parts, save);
  const forgetOwn = (attempt: NamedAttempt): Promise<Notes> =>
    ofAttempt(attempt, () => forget(attempt));
  const sending = common === null ? null : createSending(parts, common);
  const taking =
    common === null || sending === null ? null : createTaking(parts, common, sending, forgetOwn);

  /** @returns why it did not go well */
  const ask = async (
    question: (transport: WorkTransport, dirs: GitDirs, limit: AbortSignal) => Promise<void>,
  ): Promise<string | null> => {
    if (common === null) return null;
    return withDeadline(askMs, undefined, 'the common repository', (limit) =>
      stores.current((dirs) => question(common.transport, dirs, limit)),
    ).then(() => null, messageOf);
  };

  return {
    hasRepository: common !== null,
    keep: async (keyed, step, signal) => {
      const record = sending === null ? null : await records.read(keyed.taskId, keyed.attempt);
      if (sending === null || record === null || record.closed) return;
      const isKept = await stores.use(record.kind, (dirs) =>
        sending.folder(dirs, keyed, record, step, signal),
      );
      if (!isKept) throw new GitError('another server goes on with this attempt');
    },
    take: async (attempt, key, signal) => {
      let notes: Notes | null = null;
      // Not before the common repository has answered.
      const makeRoom = async (): Promise<void> => {
        notes ??= await forgetOwn(attempt);
      };
      const keyed = { taskId: attempt.taskId, attempt: attempt.attempt, key };
      const carried =
        taking === null
          ? null
          : await stores.begin(
              ({ dirs, head }) => taking.folder(dirs, head, keyed, makeRoom, signal),
              signal,
            );
      await makeRoom();
      const told = { notes: notes ?? [] };
      if (carried === null) return { has: 'nothing', ...told };
      const { step } = carried;
      return step === null ? { has: 'all', ...told } : { has: 'step', step, ...told };
    },
    takeWork: async (keyed, signal) => {
      if (taking === null) return keyed;
      return stores.current((dirs) => taking.closedWork(dirs, keyed, signal));
    },
    send: async (keyed, signal) => {
      const record = await records.read(keyed.taskId, keyed.attempt);
      if (sending === null || record === null || !record.closed) return null;
      const why = await stores
        .use(record.kind, (dirs) => sending.closed(dirs, keyed, record, signal))
        .then(() => null, messageOf);
      if ((why !== null) !== record.unsent)
        await records.write({ ...record, unsent: why !== null });
      return why;
    },
    check: () => ask((transport, dirs, limit) => transport.check(dirs, limit)),
    remove: (keyed) =>
      ask((transport, dirs, limit) => transport.remove(dirs, carriedName(keyed), limit)),
    unsent: async () =>
      (await records.all()).flatMap(({ task_id, attempt, closed, unsent }) =>
        closed && unsent ? [{ taskId: task_id as TaskId, attempt }] : [],
      ),
  };
};

const sendMs = 60_000;
const takeMs = 120_000;

/**
 * Calls of the common repository take turns with other uses of the same files, and each one ends: a
 * repository that does not answer holds up nobody else for long.
 */
export const limitTravel = (
  travel: WorkTravel,
  inTurn: SerialQueue,
  ofAttempt: <Result>(keyed: KeyedAttempt, work: () => Promise<Result>) => Promise<Result>,
): WorkTravel => {
  /** Finished work changes no file of the project, and a folder only where its attempt ended elsewhere. */
  const finishedInTurn = createSerialQueue();
  const limited = <Result>(
    ms: number,
    signal: AbortSignal | undefined,
    work: (limit: AbortSignal) => Promise<Result>,
  ): Promise<Result> => withDeadline(ms, signal, 'the common repository', work);

  return {
    ...travel,
    keep: (keyed, step, signal) =>
      ofAttempt(keyed, () => limited(sendMs, signal, (limit) => travel.keep(keyed, step, limit))),
    send: (keyed, signal) =>
      ofAttempt(keyed, () => limited(sendMs, signal, (limit) => travel.send(keyed, limit))),
    take: (attempt, key, signal) =>
      inTurn(
        () => limited(takeMs, signal, (limit) => travel.take(attempt, key, limit)),
        signal && { signal },
      ),
    takeWork: (keyed, signal) =>
      finishedInTurn(
        () => limited(takeMs, signal, (limit) => travel.takeWork(keyed, limit)),
        signal && { signal },
      ),
  };
};
