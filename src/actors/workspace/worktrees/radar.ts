import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TaskId } from '../../../machines/task.ts';
import { shownName } from '../folders/names.ts';
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

/** The newest work that waits to be merged. */
const finishedAtMost = 50;
/** A longer look at a folder would hold up the save of the attempt. */
const readLimitMs = 10_000;
/** Pairs that take longer are tried at the next look. */
const mergeLimitMs = 5_000;
const pairsAtOnce = 50;
const readAtOnce = 2;
/** Larger changes are not compared. */
const comparedAtMost = 2_000;
const pathsAtMost = 20;
const nameAtMost = 200;

/** Work as it was when it was last looked at. */
interface Member extends Omit<SeenWork, 'conflicts'> {
  readonly taskId: TaskId;
  readonly base: string;
  /** A commit of its tree, on what the attempt began with. */
  readonly commit: string;
  /** Where objects are that the repository does not have; null: it has all. */
  readonly objects: string | null;
  /** The paths that it changed, as latin1. */
  readonly paths: ReadonlySet<string>;
}
/** A member before its changes are counted. */
type Fresh = Omit<Member, 'size' | 'paths'>;
const isCounted = (each: Member | Fresh): each is Member => 'paths' in each;

type Pair = readonly [Member, Member];

const nameOf = ({ taskId, attempt }: NamedAttempt): string => `${taskId}@${attempt}`;
const attemptOf = ({ task_id, attempt }: WorkRecord): NamedAttempt => ({
  taskId: task_id as TaskId,
  attempt,
});
const keyOf = ([one, other]: Pair): string => `${one.commit} ${other.commit}`;

/** Pairs of work that changed files of one name. */
const pairsOf = (members: readonly Member[]): readonly Pair[] => {
  const byPath = new Map<string, number[]>();
  // Fifty branches that reformat two thousand files share two million names.
  const shares = members.map(() => new Uint8Array(members.length));
  for (const [at, { paths }] of members.entries())
    for (const path of paths) {
      const others = byPath.get(path);
      for (const other of others ?? []) (shares[other] ?? [])[at] = 1;
      if (others === undefined) byPath.set(path, [at]);
      else others.push(at);
    }
  return members.flatMap((one, at) =>
    members.flatMap((other, n): Pair[] => (shares[at]?.[n] === 1 ? [[one, other]] : [])),
  );
};

/** Git takes a path with a colon in quotes. */
const quoted = (path: string): string => `"${path.replaceAll(/["\\]/g, '\\$&')}"`;

/** Git that writes its objects to a folder of ours. */
const writingTo = (dirs: GitDirs, folder: string, also: readonly string[] = []): GitDirs => ({
  ...dirs,
  git: createGit(dirs.program, dirs.gitDir, {
    GIT_OBJECT_DIRECTORY: folder,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: [dirs.objects, ...also].map(quoted).join(':'),
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
const ownConflicts = (
  [one, other]: Pair,
  conflicts: readonly string[],
  made: ReadonlySet<string>,
): readonly string[] => {
  const isOwn = (path: string): boolean =>
    one.base === other.base
      ? one.paths.has(path) || other.paths.has(path)
      : one.paths.has(path) && other.paths.has(path);
  return [...new Set(conflicts)]
    .filter((path) => isOwn(path) && !made.has(path))
    .slice(0, pathsAtMost)
    .map((path) => shownName(path.slice(0, nameAtMost)));
};

/** Merges pairs and keeps nothing of it. @returns the conflicts of each, as latin1 */
const mergePairs = async (
  dirs: GitDirs,
  pairs: readonly Pair[],
  signal: AbortSignal,
): Promise<readonly (readonly string[])[]> => {
  const scratch = await mkdtemp(join(dirs.temporary, 'radar-'));
  const also = new Set(pairs.flat().flatMap(({ objects }) => objects ?? []));
  const { git } = writingTo(dirs, scratch, [...also]);
  const merge = ['merge-tree', '--write-tree', '--stdin', '-z', '--name-only', '--no-messages'];
  const input = pairs.map((pair) => `${keyOf(pair)}\n`).join('');
  const limitMs = mergeLimitMs;
  const call = git([...(await mergeAttributes(dirs, 'HEAD')), ...merge], {
    input,
    signal,
    limitMs,
  });
  const found = conflictsIn(await requireGit('the work cannot be merged', call));
  await rm(scratch, { recursive: true, force: true });
  return pairs.map((_, at) => found[at] ?? []);
};

/** All at once; where that fails, each by itself, so that one spoils no other. */
const allOrEach = async <Item>(
  items: readonly Item[],
  act: (some: readonly Item[]) => Promise<void>,
  { signal, fail }: Pick<LookPorts, 'signal' | 'fail'>,
): Promise<void> => {
  if (items.length === 0) return;
  try {
    await act(items);
  } catch (error) {
    signal.throwIfAborted();
    if (items.length === 1) fail(error);
    else for (const item of items) await allOrEach([item], act, { signal, fail });
  }
};

/** In the order of the items. A few at once: saves need the threads that read folders, too. */
const fewAtOnce = async <Item, Result>(
  items: readonly Item[],
  act: (item: Item) => Promise<Result | null>,
  { signal, fail }: Pick<LookPorts, 'signal' | 'fail'>,
): Promise<readonly Result[]> => {
  const found = new Map<number, Result>();
  const left = items.entries();
  const goOn = async (): Promise<void> => {
    for (const [at, item] of left)
      try {
        const result = await act(item);
        if (result !== null) found.set(at, result);
      } catch (error) {
        signal.throwIfAborted();
        fail(error);
      }
  };
  await Promise.all(Array.from({ length: readAtOnce }, goOn));
  return [...found].sort(([one], [other]) => one - other).map(([, result]) => result);
};

const countFresh = async (
  dirs: GitDirs,
  fresh: readonly Fresh[],
  ports: Pick<LookPorts, 'signal' | 'fail'>,
): Promise<ReadonlyMap<Fresh, Member>> => {
  const also = new Set(fresh.flatMap(({ objects }) => objects ?? []));
  const there = writingTo(dirs, dirs.objects, [...also]);
  const counted = new Map<Fresh, Member>();
  const count = async (some: readonly Fresh[]): Promise<void> => {
    const found = await countChanges(there, some, ports.signal);
    for (const [at, each] of some.entries()) {
      const { size = unchanged, paths = [], renamed = [] } = found[at] ?? {};
      const all = [...paths, ...renamed];
      const shown = new Set(all.length > comparedAtMost ? [] : all);
      counted.set(each, { ...each, size, paths: shown });
    }
  };
  await allOrEach(fresh, count, ports);
  return counted;
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

/** The tree of a folder as it is now; null: it changed nothing. No save waits for long. */
const readFolder = async (
  dirs: GitDirs,
  { options, placesOf }: WorkParts,
  record: WorkRecord,
  objects: string,
  signal: AbortSignal,
): Promise<string | null> => {
  await rm(objects, { recursive: true, force: true });
  await mkdir(objects, { recursive: true, mode: 0o700 });
  const own = await snapshotJob(dirs, record, placesOf(record.task_id, record.attempt), options);
  const largeFiles = own.largeFiles === null ? null : join(objects, 'lfs');
  const job = { ...own, largeFiles, objects, otherObjects: dirs.objects };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(readLimitMs)]);
  return (await snapshotInThread(job, limit)).tree;
};

const unchanged = { files: 0, insertions: 0, deletions: 0 };

const asFresh = async (
  dirs: GitDirs,
  record: WorkRecord,
  objects: string,
  found: string | null,
): Promise<Fresh> => {
  const tree = await treeOfWork(writingTo(dirs, objects), record, found);
  const parents = record.resolves?.parents ?? [record.base];
  const commit = tree === null ? record.base : keepCommit(dirs, objects, tree, parents);
  return { ...attemptOf(record), isLive: true, base: firstBase(record), commit, objects };
};

interface Known {
  readonly members: ReadonlyMap<string, Member>;
  /** The files in conflict of each pair. */
  readonly conflicts: ReadonlyMap<string, readonly string[]>;
}
interface LookPorts {
  /** Files that a merge makes anew, as latin1. */
  readonly made: ReadonlySet<string>;
  readonly signal: AbortSignal;
  /** One of them could not be looked at; the others are. */
  readonly fail: (error: unknown) => void;
}
const nothing: Known = { members: new Map(), conflicts: new Map() };

/** Attempts at work, then the newest complete work of other tasks. `live` loses those that are over. */
const findRecords = async (
  { records }: WorkParts,
  unmerged: readonly WorkRecord[],
  live: Map<string, number>,
): Promise<readonly WorkRecord[]> => {
  const [atWork, ended]: [WorkRecord[], WorkRecord[]] = [[], []];
  for (const [taskId, attempt] of live) {
    const record = await records.read(taskId, attempt);
    if (record?.closed === false) atWork.push(record);
    else live.delete(taskId);
    if (record?.closed === true) ended.push(record);
  }
  const newest = new Map<string, WorkRecord>();
  for (const record of [...unmerged, ...ended])
    if ((newest.get(record.task_id)?.attempt ?? 0) <= record.attempt)
      newest.set(record.task_id, record);
  const finished = [...newest.values()].filter(
    ({ task_id, commit, complete, merged, discarded, pruned }) =>
      complete &&
      !pruned &&
      commit !== null &&
      merged === null &&
      discarded === null &&
      !live.has(task_id),
  );
  const open = await Promise.all(
    finished.slice(-finishedAtMost).map(async (record) => {
      // A later attempt took its place.
      const last = await records.latest(record.task_id);
      return last === null || (last.merged === null && last.discarded === null) ? [record] : [];
    }),
  );
  return [...atWork, ...open.flat()];
};

/** Tries the pairs of which one is another than before, as many as there is time for. */
const lookAt = async (
  dirs: GitDirs,
  seen: readonly Member[],
  before: Known['conflicts'],
  { made, signal, fail }: LookPorts,
): Promise<Known> => {
  const pairs = pairsOf(seen);
  const found = new Map<string, readonly string[]>();
  for (const pair of pairs) {
    const known = before.get(keyOf(pair));
    if (known !== undefined) found.set(keyOf(pair), known);
  }
  const until = Date.now() + mergeLimitMs;
  const merge = async (some: readonly Pair[]): Promise<void> => {
    if (Date.now() > until) return;
    const conflicts = await mergePairs(dirs, some, signal);
    for (const [at, pair] of some.entries())
      found.set(keyOf(pair), ownConflicts(pair, conflicts[at] ?? [], made));
  };
  const fresh = pairs.filter((pair) => !found.has(keyOf(pair)));
  for (let at = 0; at < fresh.length; at += pairsAtOnce)
    await allOrEach(fresh.slice(at, at + pairsAtOnce), merge, { signal, fail });
  return { members: new Map(seen.map((member) => [nameOf(member), member])), conflicts: found };
};

const shown = ({ members, conflicts }: Known): ReadonlyMap<TaskId, SeenWork> => {
  const all = [...members.values()];
  const between = (one: Member, other: Member): readonly string[] =>
    conflicts.get(keyOf([one, other])) ?? conflicts.get(keyOf([other, one])) ?? [];
  const conflictsOf = (one: Member): SeenWork['conflicts'] =>
    all
      .map((other) => ({ task_id: other.taskId, paths: between(one, other) }))
      .filter(({ paths }) => paths.length > 0)
      .sort((a, b) => (a.task_id < b.task_id ? -1 : 1));
  return new Map(all.map((one) => [one.taskId, { ...one, conflicts: conflictsOf(one) }]));
};

/**
 * Tells which unmerged work will conflict while agents are at work. It reads their folders, merges trees
 * and changes nothing: new objects are in a folder of its own, until the next look (ADR 0150).
 */
export const createRadar = (
  parts: WorkParts,
  unmerged: () => Promise<readonly WorkRecord[]>,
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
  ): Promise<Member | Fresh | null> => {
    const attempt = attemptOf(record);
    const name = nameOf(attempt);
    const before = known.members.get(name);
    const isSame = before?.isLive === true ? !record.closed : before?.commit === record.commit;
    if (before !== undefined && isSame && !changed.has(name)) return before;
    const temporary = await mkdtemp(join(dirs.temporary, 'radar-'));
    const [own, objects] = [{ ...dirs, temporary }, join(folder, name)];
    const read = async (): Promise<string | null | WorkRecord> => {
      const now = await records.read(attempt.taskId, attempt.attempt);
      if (now === null || now.closed) return now;
      return readFolder(own, parts, record, objects, signal);
    };
    const found = record.closed ? record : await ofAttempt(attempt, read);
    if (typeof found !== 'object' || found === null) return asFresh(own, record, objects, found);
    const { commit, complete } = found;
    if (commit === null || !complete) return null;
    return { ...attempt, isLive: false, base: firstBase(found), commit, objects: null };
  };

  const look = async (changed: ReadonlySet<string>, ports: LookPorts): Promise<Known> => {
    const records = await findRecords(parts, await unmerged(), live);
    const [first] = records;
    if (first === undefined) return nothing;
    const ofKind = records.filter(({ kind }) => kind === first.kind);
    return stores.use(first.kind, async (dirs) => {
      const found = await fewAtOnce(
        ofKind,
        (record) => readMember(dirs, record, changed, ports.signal),
        ports,
      );
      const counted = await countFresh(
        dirs,
        found.filter((each) => !isCounted(each)),
        ports,
      );
      const seen = found.flatMap((each) => (isCounted(each) ? each : (counted.get(each) ?? [])));
      const { prefix } = dirs.repository;
      const files = [...ports.made].map((path) => Buffer.from(prefix + path).toString('latin1'));
      return lookAt(dirs, seen, known.conflicts, { ...ports, made: new Set(files) });
    });
  };

  return async (changed, made, signal) => {
    for (const { taskId, attempt } of changed)
      if ((live.get(taskId) ?? 0) < attempt) live.set(taskId, attempt);
    let problem: unknown = null;
    const fail = (error: unknown): void => {
      problem ??= error;
    };
    try {
      const names = new Set(changed.map(nameOf));
      known = await look(names, { made: new Set(made), signal, fail });
    } catch (error) {
      // What it knew may be of objects that it has removed.
      known = nothing;
      throw error;
    }
    for (const name of await readdir(folder).catch(() => []))
      if (known.members.get(name)?.objects == null)
        await rm(join(folder, name), { recursive: true, force: true });
    return { seen: shown(known), problem };
  };
};
