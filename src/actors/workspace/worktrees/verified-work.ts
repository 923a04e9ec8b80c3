import { join } from 'node:path';
import type { TaskId } from '../../../machines/task.ts';
import { findObjects } from '../git/commits.ts';
import { type Git, GitError, reasonIn, requiredLine, requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import type { WorkRecord } from '../git/work-records.ts';
import { type IndexChange, indexRecords, snapshotJob } from '../saving/snapshot-job.ts';
import { snapshotInThread } from '../saving/snapshots.ts';
import type { WorkParts } from './work-parts.ts';

type Trees = Pick<WorkRecord, 'base' | 'verified'>;

/** Modes and objects of a changed path: before and after. */
const rawChange = /^:([0-7]{6}) [0-7]{6} ([0-9a-f]+) [0-9a-f]+ [A-Z]$/;

/** The paths (latin1) that differ, with what the first tree has there. */
const differencesOf = async (git: Git, from: string, to: string): Promise<IndexChange[]> => {
  const call = git(['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', from, to]);
  const words = (await requireGit('its changes cannot be read', call))
    .toString('latin1')
    .split('\0');
  const changes: IndexChange[] = [];
  for (let at = 0; at + 1 < words.length; at += 2) {
    const [, mode = '', oid = ''] = rawChange.exec(words[at] ?? '') ?? [];
    changes.push({ path: words[at + 1] ?? '', to: mode === '000000' ? null : { mode, oid } });
  }
  return changes;
};

/** A file and a folder of one name cannot both be in a tree. */
const foldersAbove = (path: string): readonly string[] =>
  [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index));

/** Paths that a verification changed and nobody changed since, as they were before. */
const toUndo = (
  before: readonly IndexChange[],
  since: readonly IndexChange[],
): readonly IndexChange[] => {
  const changed = new Set(since.map(({ path }) => path));
  const folders = new Set(since.flatMap(({ path }) => foldersAbove(path)));
  const undone = before.filter(
    ({ path, to }) =>
      !changed.has(path) &&
      (to === null || !(folders.has(path) || foldersAbove(path).some((each) => changed.has(each)))),
  );
  // Deletions come first: they make room for a folder of that name.
  return undone.toSorted((one, other) => Number(one.to !== null) - Number(other.to !== null));
};

const withUndone = async (
  { git, temporary, repository }: GitDirs,
  tree: string,
  undone: readonly IndexChange[],
): Promise<string> => {
  const index = { GIT_INDEX_FILE: join(temporary, 'verified-index') };
  await requireGit('its work cannot be read', git(['read-tree', tree], { env: index }));
  const input = indexRecords(undone, repository.format);
  await requireGit(
    'its work cannot be told from what the verify commands wrote',
    git(['update-index', '-z', '--index-info'], { input, env: index }),
  );
  return requiredLine('the tree cannot be written', git(['write-tree'], { env: index }));
};

/**
 * The tree of the agent's work, of the tree of its folder: without what verify commands wrote
 * (ADR 0103). Null, when the folder has no changes and nothing was verified.
 */
export const treeOfWork = async (
  dirs: GitDirs,
  { base, verified }: Trees,
  found: string | null,
): Promise<string | null> => {
  if (verified === null) return found;
  const { before, after } = verified;
  const [baseTree, treeBefore, treeAfter] = await findObjects(dirs, [
    `${base}^{tree}`,
    `${before}^{tree}`,
    `${after ?? before}^{tree}`,
  ]);
  // Somebody removed loose objects meanwhile: too much is saved rather than too little.
  if (treeBefore === null || treeAfter === null) return found;
  const tree = found ?? baseTree;
  if (after === null || tree === null || tree === treeAfter) return treeBefore;
  const undone = toUndo(
    await differencesOf(dirs.git, treeBefore, treeAfter),
    await differencesOf(dirs.git, treeAfter, tree),
  );
  return undone.length === 0 ? tree : withUndone(dirs, tree, undone);
};

const pathsAtOnce = 200;

/** Files of a tree whose conflict markers, with which the attempt began, are still there. */
export const unresolvedIn = async (
  { git }: GitDirs,
  { resolves }: Pick<WorkRecord, 'resolves'>,
  tree: string,
): Promise<readonly string[]> => {
  if (resolves === null) return [];
  const marker = `^(<<<<<<<|>>>>>>>) (${resolves.sides.join('|')})`;
  const left: string[] = [];
  // The command line has an end.
  for (let at = 0; at < resolves.paths.length; at += pathsAtOnce) {
    const paths = resolves.paths.slice(at, at + pathsAtOnce);
    const found = await git(['grep', '-lzE', marker, tree, '--', ...paths]);
    // 1: nowhere.
    if (!found.ok && found.code !== 1)
      throw new GitError(`its files cannot be read: ${reasonIn(found.stderr)}`);
    const names = found.stdout.toString().split('\0').filter(Boolean);
    left.push(...names.map((name) => name.slice(tree.length + 1)));
  }
  return left;
};

/** Notes the trees of an attempt's folder around a verification, in its record. */
export const createVerification = ({ options, records, stores, placesOf }: WorkParts) => {
  const treesOf = async (record: WorkRecord) =>
    stores.use(record.kind, async (dirs) => {
      const places = placesOf(record.task_id, record.attempt);
      const job = await snapshotJob(dirs, record, places, options);
      const { tree: found } = await snapshotInThread(job);
      const [baseTree] = await findObjects(dirs, [`${record.base}^{tree}`]);
      const tree = found ?? baseTree;
      return { tree, work: (await treeOfWork(dirs, record, found)) ?? baseTree };
    });
  return {
    /** A verification that a crash ended is begun again with the work from before it. */
    begin: async (taskId: TaskId, attempt: number): Promise<void> => {
      const record = await records.read(taskId, attempt);
      if (record === null || record.closed) return;
      if (record.verified !== null && record.verified.after === null) return;
      const { work } = await treesOf(record);
      if (work !== null)
        await records.write({ ...record, verified: { before: work, after: null } });
    },
    /** Files whose conflict markers are still there. */
    unresolved: async (taskId: TaskId, attempt: number): Promise<readonly string[]> => {
      const record = await records.read(taskId, attempt);
      if (record?.resolves == null || record.closed) return [];
      const { work } = await treesOf(record);
      return work === null
        ? []
        : stores.use(record.kind, (dirs) => unresolvedIn(dirs, record, work));
    },
    end: async (taskId: TaskId, attempt: number): Promise<void> => {
      const record = await records.read(taskId, attempt);
      if (record?.verified == null || record.closed) return;
      const { tree } = await treesOf({ ...record, verified: null });
      await records.write({ ...record, verified: { ...record.verified, after: tree } });
    },
  };
};
