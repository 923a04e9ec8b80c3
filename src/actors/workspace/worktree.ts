import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { StartConflict } from '../../machines/agent-context.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { AttemptInput, Role, TaskId } from '../../machines/task.ts';
import { createMutex } from '../process/serial-queue.ts';
import { makeFolder, projectFolder, removeFolder } from './attempt-folder.ts';
import { createBranches } from './branches.ts';
import { changesOf, liveChanges, workOf } from './changes.ts';
import { commitOf, commitTree, findObjects, moveBranch } from './commits.ts';
import { GitError } from './git.ts';
import type { GitDirs } from './git-dirs.ts';
import { mergeInto } from './merge.ts';
import { objectStore } from './object-store.ts';
import { isPresent } from './plain.ts';
import type { OpenWorkspace, SavedWork, Workspace } from './port.ts';
import { createRemovals } from './removals.ts';
import { snapshotJob } from './snapshot-job.ts';
import { snapshotInThread } from './snapshots.ts';
import { findWithheld, type Start, startOf } from './start.ts';
import { type Begun, createStores } from './stores.ts';
import { findUnmerged } from './unmerged.ts';
import { type AttemptPlaces, createWorkRecords, type WorkRecord } from './work-records.ts';

export interface WorktreeOptions {
  /** Where git is. */
  readonly program: string;
  readonly projectRoot: string;
  /** Where the worktrees and their records are, outside the project. */
  readonly folder: string;
  /** What is copied into every worktree although git does not know it, such as `node_modules`; relative to the project. */
  readonly copies: readonly string[];
  /** Filters that the user allows by name when work is merged. */
  readonly filters: readonly string[];
  /** Whether a sandbox mounts the git directory of an attempt into its folder. */
  readonly sandboxed: boolean;
  readonly description: string;
}

const conflictsIn = ({ conflicts }: WorkRecord): readonly StartConflict[] =>
  conflicts.map(({ task_id, branch, files }) => ({ taskId: task_id as TaskId, branch, files }));

const recordOf = (
  { taskId, attempt, role }: AttemptInput,
  {
    branch,
    start,
    kind,
    withheld,
  }: { branch: string; start: Start; kind: WorkRecord['kind']; withheld: WorkRecord['withheld'] },
): WorkRecord => ({
  ...{ task_id: taskId, attempt, role, branch, base: start.commit, kind, withheld, notes: [] },
  conflicts: start.conflicts.map(({ taskId: task_id, files, ...rest }) => ({ ...rest, task_id, files: [...files] })),
  includes: start.includes,
  ...{ complete: false, commit: null, closed: false, merged: null },
});

/**
 * Each attempt works in a folder of its own, on a branch of its own, which is all that is left of it. What is in the folder
 * is data: it is read by open handles, and no git of ours has it for a working tree (ADR 0021).
 */
export const createWorktreeWorkspace = (options: WorktreeOptions): Workspace => {
  const { projectRoot, folder, copies, filters, sandboxed } = options;
  const records = createWorkRecords(folder);
  const stores = createStores(options);
  const branches = createBranches();
  const removals = createRemovals(folder);
  // Two at once would each find the name of a branch free.
  const inTurn = createMutex();

  const placesOf = (taskId: string, attempt: number): AttemptPlaces => {
    const name = `${taskId}@${attempt}`;
    return {
      top: records.folderOf(taskId, attempt),
      agentGit: join(folder, 'git', name),
      index: join(folder, 'git', `${name}.index`),
    };
  };

  /** What cannot be removed now is tried, and told, by the next sweep. */
  const giveBack = (places: AttemptPlaces): Promise<void> => removeFolder(places, removals).catch(() => undefined);

  const notesOf = async ({ taskId, attempt }: AttemptInput, start: Start, withheld: number): Promise<string[]> => {
    const before = attempt > 1 ? await records.read(taskId, attempt - 1) : null;
    const earlier =
      before?.commit == null ? [] : [`An earlier attempt at this task left its work on the branch ${before.branch}.`];
    const some = withheld === 1 ? '1 file' : `${withheld} files`;
    const absent = `${some} of that work are settings that other programs run or trust; you have them as the project's branch has them.`;
    const large = filters.includes('lfs')
      ? ['Files of git-lfs are pointers in your folder; to change one, write the whole file.']
      : [];
    return [...start.notes, ...earlier, ...large, ...(withheld === 0 ? [] : [absent])];
  };

  const create = async (
    attempt: AttemptInput,
    after: readonly TaskId[],
    begun: Begun,
    signal: AbortSignal | undefined,
  ): Promise<Pick<OpenWorkspace, 'notes' | 'conflicts'>> => {
    const { dirs } = begun;
    const start = await startOf(begun, records, after, signal);
    const { instead, withheld } = await findWithheld(begun, start.commit);
    signal?.throwIfAborted();
    const branch = await branches.make(dirs, attempt, start.commit);
    const places = placesOf(attempt.taskId, attempt.attempt);
    let copyNotes: readonly string[] = [];
    try {
      const isMounted = sandboxed;
      const wanted = { start: start.commit, branch, instead, projectRoot, copies, isMounted, removals, signal };
      copyNotes = await makeFolder(dirs, places, wanted);
      signal?.throwIfAborted();
    } catch (error) {
      await giveBack(places);
      await moveBranch(dirs, branch, null, start.commit);
      throw error;
    }
    const { kind } = dirs.repository;
    await records.write(recordOf(attempt, { branch, start, kind, withheld: [...withheld] }));
    return { notes: [...(await notesOf(attempt, start, withheld.length)), ...copyNotes], conflicts: start.conflicts };
  };

  const openNow = async (
    attempt: AttemptInput,
    after: readonly TaskId[],
    signal: AbortSignal | undefined,
  ): Promise<OpenWorkspace> => {
    const { taskId, attempt: number } = attempt;
    const { top, agentGit } = placesOf(taskId, number);
    const record = await records.read(taskId, number);
    if (record?.closed === true)
      throw new GitError(`attempt ${number} of ${taskId} is over; its work is on ${record.branch}`);
    const opened = async (
      { repository }: GitDirs,
      told: Pick<OpenWorkspace, 'notes' | 'conflicts'>,
    ): Promise<OpenWorkspace> => {
      const real = await realpath(top);
      const git = (await isPresent(agentGit)) ? { dir: agentGit, at: join(real, '.git') } : null;
      return {
        root: projectFolder(real, repository.prefix),
        readable: [await objectStore(repository.commonDir)],
        git,
        ...told,
      };
    };
    if (record !== null && (await isPresent(top)))
      return stores.use(record.kind, (dirs) => opened(dirs, { notes: [], conflicts: conflictsIn(record) }));
    return stores.begin(async (begun) => opened(begun.dirs, await create(attempt, after, begun, signal)), signal);
  };

  /** The commit of what is in the folder now, on the branch of the attempt; null when it is what it was. */
  const commitFolder = async (dirs: GitDirs, record: WorkRecord, title: string) => {
    const places = placesOf(record.task_id, record.attempt);
    const { tree, notes } = await snapshotInThread(snapshotJob(dirs, record, places, filters));
    const unchanged = { tip: null, branch: record.branch, notes };
    if (tree === null) return unchanged;
    const { task_id, attempt, role, base } = record;
    const ref = `refs/heads/${record.branch}`;
    const [baseTree, tip, tipTree] = await findObjects(dirs, [`${base}^{tree}`, `${ref}^{commit}`, `${ref}^{tree}`]);
    if (tree === baseTree) return unchanged;
    // Saved before, and cut short before that was written down.
    if (tip !== base && tree === tipTree) return { tip, branch: record.branch, notes };
    const message = `${title}\n\nTask: ${task_id}\nAttempt: ${attempt}\nRole: ${role}\n`;
    const commit = await commitTree(dirs, { tree, parents: [base], message, role });
    const branch = await branches.move(dirs, record, commit);
    return { tip: commit, branch, notes };
  };

  const close = async (
    dirs: GitDirs,
    record: WorkRecord,
    title: string,
    complete: boolean,
  ): Promise<SavedWork | null> => {
    const { base, attempt } = record;
    const places = placesOf(record.task_id, attempt);
    const isHere = await isPresent(places.top);
    const kept = isHere
      ? await commitFolder(dirs, record, title)
      : { tip: await commitOf(dirs, `refs/heads/${record.branch}`), branch: record.branch, notes: [] };
    const commit = kept.tip === base ? null : kept.tip;
    // A branch without a change is nobody's work.
    if (commit === null) await moveBranch(dirs, record.branch, null, base);
    const closed = { ...record, branch: kept.branch, notes: [...kept.notes], commit, complete, closed: true };
    await records.write(closed);
    await giveBack(places);
    if (!isHere)
      throw new GitError(
        `the worktree ${places.top} is gone: what attempt ${attempt} changed there is lost${commit === null ? '' : `; what it had is on ${closed.branch}`}`,
      );
    return workOf(dirs, closed);
  };

  const saveNow = async (
    { taskId, attempt }: AttemptInput,
    title: string,
    complete: boolean,
  ): Promise<SavedWork | null> => {
    const record = await records.read(taskId, attempt);
    if (record === null) return null;
    return stores.use(record.kind, async (dirs) => {
      if (!record.closed) return close(dirs, record, title, complete);
      if (record.complete !== complete) await records.write({ ...record, complete });
      await giveBack(placesOf(taskId, attempt));
      return workOf(dirs, record);
    });
  };

  return {
    mode: 'worktree',
    describe: () => options.description,
    open: (attempt, after = [], signal) => inTurn(() => openNow(attempt, after, signal)),
    alone: (work) => work(),
    save: (attempt, title, isComplete = true) => inTurn(() => saveNow(attempt, title, isComplete)),
    leftOut: async (taskId, attempt) => (await records.read(taskId, attempt))?.notes ?? [],
    sweep: async (isOver) => {
      await stores.tidy();
      const cut = await inTurn(stores.mend).catch(messageOf);
      const failed = [...(await removals.sweep()), ...(cut === null ? [] : [cut])];
      for (const { task_id, attempt, role, closed } of await records.all()) {
        const taskId = task_id as TaskId;
        if (!closed && !isOver(taskId, attempt)) continue;
        const input = { taskId, attempt, role: role as Role, options: {} };
        const again = async (): Promise<void> => {
          if (closed) await removeFolder(placesOf(taskId, attempt), removals);
          else await saveNow(input, `Work of ${taskId}`, false);
        };
        await inTurn(again).catch((error: unknown) => failed.push(`${taskId}#${attempt}: ${messageOf(error)}`));
      }
      return failed;
    },
    merge: (taskId, attempt, mode, title, signal) =>
      inTurn(async () => {
        signal?.throwIfAborted();
        const record = await records.read(taskId, attempt);
        if (record?.commit == null || mode === 'none') return { status: 'nothing' };
        await stores.mend();
        const { branch, commit, role } = record;
        const message = `${title}\n\nTask: ${taskId}\nAttempt: ${attempt}\n`;
        return stores.use(record.kind, async (dirs) => {
          const checkout = await stores.checkout(dirs, filters, signal);
          const first = await findUnmerged(dirs, records, record);
          if (first !== null) return { status: 'conflict', branch, why: first, files: [] };
          const merged = await mergeInto(dirs, checkout, { branch, commit, mode, message, role, signal });
          const has = merged.status === 'merged' ? merged.commit : await commitOf(dirs, 'HEAD');
          if (merged.status !== 'conflict') await records.write({ ...record, merged: has });
          return merged;
        });
      }),
    diff: (taskId, attempt) =>
      inTurn(async () => {
        const record = attempt === null ? await records.latest(taskId) : await records.read(taskId, attempt);
        if (record === null) return null;
        const { base, commit, closed } = record;
        if (closed && commit === null) return { attempt: record.attempt, patch: '', guarded: [] };
        return stores.use(record.kind, (dirs) =>
          closed && commit !== null
            ? changesOf(dirs, record.attempt, base, commit)
            : liveChanges(dirs, record, placesOf(record.task_id, record.attempt), filters),
        );
      }),
  };
};
