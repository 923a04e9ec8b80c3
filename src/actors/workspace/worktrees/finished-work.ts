import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../machines/message-of.ts';
import type { TaskId } from '../../../machines/task.ts';
import { commitOf, findObjects, moveBranch } from '../git/commits.ts';
import { reasonIn, requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { isPresent } from '../git/plain.ts';
import { firstBase, type WorkRecord } from '../git/work-records.ts';
import type { NamedAttempt } from '../port.ts';
import { removeFolder } from './attempt-folder.ts';
import { changesOf, liveChanges } from './changes.ts';
import { findCheckedOut } from './open-work.ts';
import { createWorkParts, type WorkParts, type WorktreeOptions } from './work-parts.ts';

/**
 * The size of all files below a folder (bytes). Follows no link; what cannot be read counts as
 * nothing.
 */
const sizeOfFolder = async (folder: string): Promise<number> => {
  let bytes = 0;
  const folders = [folder];
  for (let at = folders.pop(); at !== undefined; at = folders.pop())
    for (const entry of await readdir(at, { withFileTypes: true }).catch(() => [])) {
      const path = join(at, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else bytes += (await lstat(path).catch(() => null))?.size ?? 0;
    }
  return bytes;
};

/** The branch, folder and record that an attempt left. */
export interface FinishedAttempt {
  readonly taskId: string;
  readonly attempt: number;
  readonly branch: string | null;
  readonly folder: string | null;
  /** Branches beside its own that nobody merged, with what its agent had elsewhere. */
  readonly beside: readonly string[];
  /** Why nobody needs its work that is not merged; null: somebody may. */
  readonly superseded: string | null;
  /** True when nobody has its changes, or that is not known. */
  readonly isUnmerged: boolean;
  /** Why it must stay; null: all of it can go. */
  readonly stays: string | null;
}

export interface FinishedWork {
  /** `dropped`: attempts by `keyOfAttempt` whose work goes, so that nobody merges it any more. */
  all(dropped?: ReadonlySet<string>): Promise<readonly FinishedAttempt[]>;
  /** Removes what other servers can take of it, branch, folder and record, in this order. @returns why it stays, or null */
  remove(work: FinishedAttempt): Promise<string | null>;
  /** As `remove`; the record of merged work stays, and says that it is merged. */
  prune(work: FinishedAttempt): Promise<string | null>;
  /** Removes the branches beside its own. @returns why they stay, or null */
  pruneBeside(work: FinishedAttempt): Promise<string | null>;
  /** The size of the files in its folder (bytes). */
  sizeOf(work: FinishedAttempt): Promise<number>;
  /** Waits until removed folders are gone. @returns what cannot be removed */
  finish(): Promise<readonly string[]>;
}

interface Branches {
  readonly tips: ReadonlyMap<string, string>;
  readonly checkedOut: ReadonlySet<string>;
  /** Commits of attempts that no other branch has. */
  readonly unmerged: ReadonlySet<string>;
}

const refOf = ({ branch }: Pick<WorkRecord, 'branch'>): string => `refs/heads/${branch}`;
export const keyOfAttempt = (taskId: string, attempt: number): string => `${taskId}#${attempt}`;
const keyOf = ({ task_id, attempt }: Pick<WorkRecord, 'task_id' | 'attempt'>): string =>
  keyOfAttempt(task_id, attempt);

/** An attempt that goes on after a review has the branch of an earlier one. */
const isOurBranch = ({ task_id, attempt, first_base, branch }: WorkRecord): boolean => {
  const prefix = `agent/${task_id}/`;
  const [, number] = /^(\d+)(-\d+)?$/.exec(branch.slice(prefix.length)) ?? [];
  if (!branch.startsWith(prefix) || number === undefined) return false;
  return first_base === null ? Number(number) === attempt : Number(number) <= attempt;
};

/** The last attempt on each branch: it has the work of all. */
const lastOnBranch = (records: readonly WorkRecord[]): ReadonlyMap<string, WorkRecord> =>
  new Map(
    [...records].sort((a, b) => a.attempt - b.attempt).map((record) => [refOf(record), record]),
  );

const readTips = async ({ git }: GitDirs): Promise<ReadonlyMap<string, string>> => {
  const said = await requireGit(
    'the branches cannot be read',
    git(['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads/']),
  );
  const lines = said.toString('latin1').split('\n').filter(Boolean);
  return new Map(
    lines.map((line) => [line.slice(line.indexOf(' ') + 1), line.slice(0, line.indexOf(' '))]),
  );
};

/** The commits that exist and are in no branch but the records' own. */
const unmergedTasks = async (
  dirs: GitDirs,
  records: readonly WorkRecord[],
  tips: ReadonlyMap<string, string>,
): Promise<ReadonlySet<string>> => {
  const commits = [
    ...new Set(
      records.flatMap(({ commit, merged, kept }) => [
        ...[commit, merged].filter((id) => id !== null),
        ...kept.map((beside) => beside.commit),
      ]),
    ),
  ];
  if (commits.length === 0) return new Set();
  const own = new Set(records.flatMap((record) => [refOf(record), ...record.kept.map(refOf)]));
  const others = [...tips].flatMap(([name, tip]) => (own.has(name) ? [] : [`^${tip}`]));
  const found = await findObjects(
    dirs,
    commits.map((id) => `${id}^{commit}`),
  );
  const head = await findObjects(dirs, ['HEAD^{commit}']);
  const there = commits.filter((_, at) => found[at] != null);
  const input = [
    ...there,
    ...others,
    ...head.flatMap((id) => (id === null ? [] : [`^${id}`])),
  ].join('\n');
  const said = await requireGit(
    'the commits cannot be read',
    dirs.git(['rev-list', '--stdin'], { input: `${input}\n` }),
  );
  const left = new Set(said.toString().split('\n'));
  // A commit that is gone is in no branch.
  return new Set(commits.filter((id) => left.has(id) || !there.includes(id)));
};

const isSaved = async (
  { options, placesOf }: WorkParts,
  dirs: GitDirs,
  record: WorkRecord,
): Promise<boolean> => {
  const { attempt, commit } = record;
  const now = await liveChanges(dirs, record, placesOf(record.task_id, attempt), options);
  return (
    now.patch ===
    (commit === null ? '' : (await changesOf(dirs, attempt, firstBase(record), commit)).patch)
  );
};

const folderStays = async (
  parts: WorkParts,
  dirs: GitDirs,
  record: WorkRecord,
): Promise<string | null> => {
  const folder = parts.placesOf(record.task_id, record.attempt).top;
  const stat = await lstat(folder).catch(() => null);
  if (stat === null) return null;
  if (!stat.isDirectory()) return `${folder} was not made by this server`;
  const saved = await isSaved(parts, dirs, record).catch(() => false);
  return saved ? null : `${folder} has changes that are not saved`;
};

const branchStays = (
  record: WorkRecord,
  { tips, checkedOut, unmerged }: Branches,
): string | null => {
  const { branch, commit, merged } = record;
  const tip = tips.get(refOf(record));
  if (tip === undefined) return null;
  if (!isOurBranch(record) || tip !== commit) return `somebody else moved the branch ${branch}`;
  if (checkedOut.has(refOf(record))) return `the branch ${branch} is checked out`;
  const isMerged = !unmerged.has(commit) || (merged !== null && !unmerged.has(merged));
  return isMerged ? null : 'not merged';
};

const branchesBeside = (
  { kept }: WorkRecord,
  { tips, checkedOut, unmerged }: Branches,
): readonly string[] =>
  kept.flatMap((beside) => {
    const ref = refOf(beside);
    const isOpen = tips.get(ref) === beside.commit && unmerged.has(beside.commit);
    return isOpen && !checkedOut.has(ref) ? [beside.branch] : [];
  });

const whySuperseded = (record: WorkRecord, all: readonly WorkRecord[]): string | null => {
  if (record.discarded !== null)
    return record.discarded.undone ? 'it was undone' : 'it was discarded';
  const later = all.find(
    ({ task_id, attempt, complete, closed }) =>
      task_id === record.task_id && attempt > record.attempt && complete && closed,
  );
  if (later !== undefined) return `attempt ${later.attempt} is complete`;
  return record.complete ? null : 'the attempt did not complete it';
};

/** Work of the project's own repository, or of ours. */
const finishedAttempt = async (
  parts: WorkParts,
  dirs: GitDirs,
  records: readonly WorkRecord[],
): Promise<FinishedAttempt[]> => {
  const tips = await readTips(dirs);
  const branches: Branches = {
    tips,
    checkedOut: await findCheckedOut(dirs.repository),
    unmerged: await unmergedTasks(dirs, records, tips),
  };
  const works: FinishedAttempt[] = [];
  const last = lastOnBranch(records);
  for (const record of records) {
    const { task_id: taskId, attempt, branch, closed } = record;
    const folder = parts.placesOf(taskId, attempt).top;
    const holder = last.get(refOf(record)) ?? record;
    const ofBranch = holder.closed
      ? branchStays(holder, branches)
      : `attempt ${holder.attempt} goes on with it`;
    const beside = branchesBeside(record, branches);
    const isUnmerged = !closed || ofBranch === 'not merged' || beside.length > 0;
    const stays = closed ? (ofBranch ?? (await folderStays(parts, dirs, record))) : 'not saved yet';
    works.push({
      taskId,
      attempt,
      // It goes with the last attempt on it.
      branch: record === holder && tips.has(refOf(record)) ? branch : null,
      folder: (await isPresent(folder)) ? folder : null,
      beside,
      superseded: ofBranch === 'not merged' ? whySuperseded(holder, records) : null,
      isUnmerged,
      stays,
    });
  }
  return works;
};

/** Adds the work that a later unmerged attempt began with: merging that needs the record. */
const withIncluded = (
  works: readonly FinishedAttempt[],
  records: readonly WorkRecord[],
  dropped: ReadonlySet<string>,
): readonly FinishedAttempt[] => {
  const open = new Set(
    works
      .filter(({ isUnmerged }) => isUnmerged)
      .map(({ taskId, attempt }) => keyOfAttempt(taskId, attempt))
      .filter((key) => !dropped.has(key)),
  );
  const needed = new Map(
    records
      .filter((record) => open.has(keyOf(record)))
      .flatMap(({ task_id, includes }) =>
        includes.map((included) => [keyOf(included), task_id] as const),
      ),
  );
  return works.map((work) => {
    const by = needed.get(keyOfAttempt(work.taskId, work.attempt));
    return by === undefined || work.stays !== null
      ? work
      : { ...work, stays: `${by} builds on it and is not merged` };
  });
};

/** Work of earlier attempts: what is merged or empty can go. Whatever is not certain stays. */
export const createFinishedWork = (
  options: WorktreeOptions,
  forget: (attempt: NamedAttempt) => Promise<string | null> = async () => null,
): FinishedWork => {
  const parts = createWorkParts(options);
  const { records, stores, removals, placesOf } = parts;
  const ofKind = async (
    kind: WorkRecord['kind'],
    all: readonly WorkRecord[],
  ): Promise<readonly FinishedAttempt[]> => {
    const own = all.filter((record) => record.kind === kind);
    if (own.length === 0) return [];
    try {
      return await stores.use(kind, (dirs) => finishedAttempt(parts, dirs, own));
    } catch (error) {
      const stays = messageOf(error);
      return own.map(({ task_id: taskId, attempt }) => ({
        taskId,
        attempt,
        branch: null,
        folder: null,
        beside: [],
        superseded: null,
        isUnmerged: true,
        stays,
      }));
    }
  };
  const removeBranch = async (dirs: GitDirs, record: WorkRecord): Promise<string | null> => {
    if ((await findCheckedOut(dirs.repository)).has(refOf(record)))
      return `the branch ${record.branch} is checked out`;
    const gone = await moveBranch(dirs, record.branch, null, record.commit);
    if (gone.ok || (await commitOf(dirs, refOf(record))) === null) return null;
    return `the branch ${record.branch} could not be removed: ${reasonIn(gone.stderr)}`;
  };
  const pruneBeside = async ({ taskId, attempt, beside }: FinishedAttempt) => {
    const record = await records.read(taskId, attempt);
    if (record === null) return null;
    for (const kept of record.kept.filter(({ branch }) => beside.includes(branch))) {
      const stays = await stores.use(record.kind, (dirs) =>
        removeBranch(dirs, { ...record, ...kept }),
      );
      if (stays !== null) return stays;
    }
    return null;
  };
  const remove = async (
    { taskId, attempt, folder, branch }: FinishedAttempt,
    keepsMerged: boolean,
  ): Promise<string | null> => {
    const record = await records.read(taskId, attempt);
    if (record === null) return null;
    if (!record.closed) return 'not saved yet';
    const places = placesOf(taskId, attempt);
    if (folder !== null && !(await lstat(folder)).isDirectory())
      return `${folder} was not made by this server`;
    const kept = await forget({ taskId: taskId as TaskId, attempt });
    if (kept !== null) return kept;
    const stays =
      branch === null ? null : await stores.use(record.kind, (dirs) => removeBranch(dirs, record));
    if (stays !== null) return stays;
    await removeFolder(places, removals);
    if (keepsMerged && record.merged !== null) await records.write({ ...record, pruned: true });
    else await records.remove(taskId, attempt);
    return null;
  };
  return {
    all: async (dropped = new Set()) => {
      const all = await records.all();
      const works = [...(await ofKind('project', all)), ...(await ofKind('own', all))];
      return withIncluded(works, all, dropped);
    },
    remove: (work) => remove(work, false).catch(messageOf),
    prune: (work) => remove(work, true).catch(messageOf),
    pruneBeside: (work) => pruneBeside(work).catch(messageOf),
    sizeOf: async ({ folder }) => (folder === null ? 0 : sizeOfFolder(folder)),
    finish: removals.sweep,
  };
};
