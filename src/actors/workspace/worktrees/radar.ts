import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TaskId } from '../../../machines/task.ts';
import { textOf } from '../folders/names.ts';
import { blobName, keepBlob } from '../git/blobs.ts';
import { mergeAttributes } from '../git/commits.ts';
import { createGit, requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { firstBase, type WorkRecord } from '../git/work-records.ts';
import type { NamedAttempt, Radar, SeenWork } from '../port.ts';
import { snapshotJob } from '../saving/snapshot-job.ts';
import { snapshotInThread } from '../saving/snapshots.ts';
import { countChanges } from './changes.ts';
import { treeOfWork } from './verified-work.ts';
import type { WorkParts } from './work-parts.ts';

/** Of work that waits to be merged, the newest. */
const finishedAtMost = 50;
const readAtOnce = 4;
const pathsAtMost = 100;

/** Work as it was when it was last looked at. */
interface Member extends Omit<SeenWork, 'conflicts'> {
  readonly taskId: TaskId;
  readonly base: string;
  /** A commit of its tree, on what the attempt began with. */
  readonly commit: string;
  /** Where objects are that the repository does not have; null: it has all. */
  readonly objects: string | null;
  /** What it changed, as latin1. */
  readonly paths: ReadonlySet<string>;
}

type Pair = readonly [Member, Member];

const nameOf = ({ taskId, attempt }: NamedAttempt): string => `${taskId}@${attempt}`;
const attemptOf = ({ task_id, attempt }: WorkRecord): NamedAttempt => ({
  taskId: task_id as TaskId,
  attempt,
});
const keyOf = ([one, other]: Pair): string => `${one.commit} ${other.commit}`;

/** Pairs of work that changed files of one name, one of them by an agent that is at work. */
const pairsOf = (members: readonly Member[]): readonly Pair[] =>
  members.flatMap((one, at) =>
    members
      .slice(at + 1)
      .filter(
        (other) =>
          (one.isLive || other.isLive) && [...one.paths].some((path) => other.paths.has(path)),
      )
      .map((other): Pair => [one, other]),
  );

/** Git that writes its objects to a folder of ours. */
const writingTo = (dirs: GitDirs, folder: string, also: readonly string[] = []): GitDirs => ({
  ...dirs,
  git: createGit(dirs.program, dirs.gitDir, {
    GIT_OBJECT_DIRECTORY: folder,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: [dirs.objects, ...also].join(':'),
  }),
});

/** Each merge is its outcome, a tree, the names of the files in conflict, and an empty name. */
const conflictsIn = (said: Buffer): readonly (readonly string[])[] => {
  const words = said.toString('latin1').split('\0');
  const found: string[][] = [];
  for (let at = 0; at + 2 < words.length; ) {
    const end = words.indexOf('', at + 2);
    found.push(words.slice(at + 2, end));
    at = end + 1;
  }
  return found;
};

/**
 * The conflicts between what both changed, not with what one of them began with. With one base it may be
 * a file that one of them renamed.
 */
const ownConflicts = ([one, other]: Pair, conflicts: readonly string[]): readonly string[] => {
  const isOwn = (path: string): boolean =>
    one.base === other.base
      ? one.paths.has(path) || other.paths.has(path)
      : one.paths.has(path) && other.paths.has(path);
  return [...new Set(conflicts)].filter(isOwn).slice(0, pathsAtMost).map(textOf);
};

/** Merges all pairs in one process, and keeps nothing of it. @returns their conflicts, in their order */
const mergePairs = async (
  dirs: GitDirs,
  pairs: readonly Pair[],
  signal: AbortSignal,
): Promise<readonly (readonly string[])[]> => {
  if (pairs.length === 0) return [];
  const scratch = join(dirs.temporary, 'radar');
  await mkdir(scratch);
  const also = new Set(pairs.flat().flatMap(({ objects }) => objects ?? []));
  const { git } = writingTo(dirs, scratch, [...also]);
  const merge = ['merge-tree', '--write-tree', '--stdin', '-z', '--name-only', '--no-messages'];
  const input = pairs.map((pair) => `${keyOf(pair)}\n`).join('');
  const call = git([...(await mergeAttributes(dirs, 'HEAD')), ...merge], { input, signal });
  const found = conflictsIn(await requireGit('the work cannot be merged', call));
  return pairs.map((pair, at) => ownConflicts(pair, found[at] ?? []));
};

const readFinished = async (
  dirs: GitDirs,
  record: WorkRecord & { readonly commit: string },
): Promise<Member> => {
  const [base, { commit }] = [firstBase(record), record];
  const { size, paths, renamed } = await countChanges(dirs, base, commit);
  return {
    ...{ ...attemptOf(record), isLive: false, base, commit, objects: null, size },
    paths: new Set([...paths, ...renamed]),
  };
};

/** Writes a commit that nobody sees, without a process. */
const keepCommit = (
  { repository: { format } }: GitDirs,
  objects: string,
  tree: string,
  parents: readonly string[],
): string => {
  const by = 'agent-server <agent-server@localhost> 0 +0000';
  const above = parents.map((parent) => `parent ${parent}\n`).join('');
  const text = `tree ${tree}\n${above}author ${by}\ncommitter ${by}\n\nAs it is\n`;
  const object = Buffer.from(`commit ${text.length}\0${text}`);
  const id = blobName(object, format);
  keepBlob(objects, id, object);
  return id;
};

/** The folder of an attempt at work as it is now. Null: it changed nothing. */
const readLive = async (
  dirs: GitDirs,
  { options, placesOf }: WorkParts,
  record: WorkRecord,
  objects: string,
  signal: AbortSignal,
): Promise<Member | null> => {
  await rm(objects, { recursive: true, force: true });
  await mkdir(objects, { recursive: true, mode: 0o700 });
  const own = await snapshotJob(dirs, record, placesOf(record.task_id, record.attempt), options);
  const largeFiles = own.largeFiles === null ? null : join(objects, 'lfs');
  const job = { ...own, largeFiles, objects, otherObjects: dirs.objects };
  const there = writingTo(dirs, objects);
  const tree = await treeOfWork(there, record, (await snapshotInThread(job, signal)).tree);
  if (tree === null) return null;
  const base = firstBase(record);
  const { size, paths, renamed } = await countChanges(there, base, tree);
  const parents = record.resolves?.parents ?? [record.base];
  const commit = keepCommit(dirs, objects, tree, parents);
  return {
    ...{ ...attemptOf(record), isLive: true, base, commit, objects, size },
    paths: new Set([...paths, ...renamed]),
  };
};

interface Known {
  readonly members: ReadonlyMap<string, Member>;
  /** The files in conflict of each pair. */
  readonly conflicts: ReadonlyMap<string, readonly string[]>;
}
const nothing: Known = { members: new Map(), conflicts: new Map() };

/** Attempts at work, then the newest complete work of other tasks. `live` loses those that are over. */
const findRecords = async (
  { records }: WorkParts,
  unmerged: readonly WorkRecord[],
  live: Map<string, number>,
): Promise<readonly WorkRecord[]> => {
  const atWork: WorkRecord[] = [];
  for (const [taskId, attempt] of live) {
    const record = await records.read(taskId, attempt);
    if (record === null || record.closed) live.delete(taskId);
    else atWork.push(record);
  }
  const newest = new Map<string, WorkRecord>();
  for (const record of unmerged)
    if ((newest.get(record.task_id)?.attempt ?? 0) < record.attempt)
      newest.set(record.task_id, record);
  const finished = [...newest.values()].filter(
    ({ complete, pruned, task_id }) => complete && !pruned && !live.has(task_id),
  );
  return atWork.length === 0 ? [] : [...atWork, ...finished.slice(-finishedAtMost)];
};

/** Tries the pairs of which one is another than before. */
const lookAt = async (
  dirs: GitDirs,
  seen: readonly Member[],
  before: Known['conflicts'],
  signal: AbortSignal,
): Promise<Known> => {
  const pairs = pairsOf(seen);
  const fresh = pairs.filter((pair) => !before.has(keyOf(pair)));
  const tried = await mergePairs(dirs, fresh, signal);
  const found = new Map(fresh.map((pair, at) => [keyOf(pair), tried[at] ?? []]));
  const conflictOf = (key: string): readonly string[] => found.get(key) ?? before.get(key) ?? [];
  return {
    members: new Map(seen.map((member) => [nameOf(member), member])),
    conflicts: new Map(pairs.map(keyOf).map((key) => [key, conflictOf(key)])),
  };
};

const shown = ({ members, conflicts }: Known): ReadonlyMap<TaskId, SeenWork> => {
  const all = [...members.values()];
  const between = (one: Member, other: Member): readonly string[] =>
    conflicts.get(keyOf([one, other])) ?? conflicts.get(keyOf([other, one])) ?? [];
  const conflictsOf = (one: Member): SeenWork['conflicts'] =>
    all
      .map((other) => ({ task_id: other.taskId, paths: between(one, other) }))
      .filter(({ paths }) => paths.length > 0);
  return new Map(all.map((one) => [one.taskId, { ...one, conflicts: conflictsOf(one) }]));
};

/**
 * Tells which unmerged work will conflict while agents are at work. It reads their folders, merges trees
 * and changes nothing: new objects are in a folder of its own, until the next look (ADR 0150).
 */
export const createRadar = (
  parts: WorkParts,
  unmerged: () => readonly WorkRecord[],
  ofAttempt: <Result>(attempt: NamedAttempt, work: () => Promise<Result>) => Promise<Result>,
): Radar => {
  const { options, records, stores } = parts;
  const folder = join(options.folder, 'radar');
  const live = new Map<string, number>();
  let known = nothing;

  const readMember = async (
    dirs: GitDirs,
    record: WorkRecord,
    changed: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<Member | null> => {
    const attempt = attemptOf(record);
    const name = nameOf(attempt);
    const before = known.members.get(name);
    if (before?.isLive === !record.closed && !changed.has(name)) return before;
    if (record.commit !== null) return readFinished(dirs, { ...record, commit: record.commit });
    return ofAttempt(attempt, async () => {
      if ((await records.read(attempt.taskId, attempt.attempt))?.closed !== false) return null;
      const temporary = join(dirs.temporary, name);
      await mkdir(temporary);
      return readLive({ ...dirs, temporary }, parts, record, join(folder, name), signal);
    });
  };

  const look = async (changed: ReadonlySet<string>, signal: AbortSignal): Promise<Known> => {
    const found = await findRecords(parts, unmerged(), live);
    const [first] = found;
    if (first === undefined) return nothing;
    const ofKind = found.filter(({ kind }) => kind === first.kind);
    return stores.use(first.kind, async (dirs) => {
      const seen: Member[] = [];
      for (let at = 0; at < ofKind.length; at += readAtOnce) {
        const some = ofKind.slice(at, at + readAtOnce);
        const read = some.map((each) => readMember(dirs, each, changed, signal));
        seen.push(...(await Promise.all(read)).filter((member) => member !== null));
      }
      return lookAt(dirs, seen, known.conflicts, signal);
    });
  };

  return async (changed, signal) => {
    for (const { taskId, attempt } of changed) live.set(taskId, attempt);
    try {
      known = await look(new Set(changed.map(nameOf)), signal);
    } catch (error) {
      // What it knew may be of objects that it has removed.
      known = nothing;
      throw error;
    }
    for (const name of await readdir(folder).catch(() => []))
      if (known.members.get(name)?.objects == null)
        await rm(join(folder, name), { recursive: true, force: true });
    return shown(known);
  };
};
