import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { textOf } from '../folders/names.ts';
import { createGit, GitError, requireGit } from '../git/git.ts';
import type { GitDirs } from '../git/git-dirs.ts';
import { obeyedIn } from '../git/obeyed-places.ts';
import { type AttemptPlaces, firstBase, type WorkRecord } from '../git/work-records.ts';
import type { ChangedPath, Changes, DiffPart, SavedWork } from '../port.ts';
import { generatedNote } from '../saving/snapshot.ts';
import { type SnapshotOptions, snapshotJob } from '../saving/snapshot-job.ts';
import { snapshotInThread } from '../saving/snapshots.ts';
import { treeOfWork } from './verified-work.ts';

const plainDiffOptions = ['--no-ext-diff', '--no-textconv', '--no-color', '--submodule=short'];

/** The modes, objects and letter before the paths of a change. */
const changeLine = /^:[0-7]{6} [0-7]{6} [0-9a-f]+ [0-9a-f]+ ([A-Z])\d*$/;

/** A renamed file has its old path before the new one. */
const pathsIn = (raw: Buffer): readonly ChangedPath[] => {
  const words = raw.toString('latin1').split('\0');
  const found: ChangedPath[] = [];
  for (let at = 0; words[at]; ) {
    const isRenamed = changeLine.exec(words[at] ?? '')?.[1] === 'R';
    const [one = '', other = ''] = words.slice(at + 1, at + 3).map(textOf);
    found.push(isRenamed ? { path: other, renamed_from: one } : { path: one });
    at += isRenamed ? 3 : 2;
  }
  return found;
};

export const changesOf = async (
  dirs: GitDirs,
  attempt: number,
  base: string,
  later: string,
  part?: DiffPart,
): Promise<Changes> => {
  const isNames = part !== undefined && 'names' in part;
  const args = [
    'diff-tree',
    ...(isNames ? [] : ['-p']),
    '--raw',
    '-z',
    '-r',
    '-M',
    '--full-index',
    ...plainDiffOptions,
    base,
    later,
    ...(part !== undefined && 'paths' in part ? ['--', ...part.paths] : []),
  ];
  const said = await requireGit('its changes cannot be read', dirs.git(args));
  // The paths, an empty path, then the patch.
  const end = isNames ? said.length : Math.max(said.indexOf('\0\0'), 0);
  const files = pathsIn(said.subarray(0, end));
  const paths = files.flatMap(({ path, renamed_from: from }) =>
    from === undefined ? path : [path, from],
  );
  const guarded = [...new Set(paths)].filter(await obeyedIn(dirs, base)).sort();
  // Whole: spaces and line ends are part of what git applies.
  const patch = said.subarray(end + 2).toString();
  return { attempt, patch, guarded, ...(isNames ? { files } : {}) };
};

/**
 * The changes of a running attempt, as if it were saved now. Its objects go to a temporary store.
 */
export const liveChanges = async (
  dirs: GitDirs,
  record: WorkRecord,
  places: AttemptPlaces,
  options: SnapshotOptions,
  part?: DiffPart,
): Promise<Changes> => {
  const scratch = join(dirs.temporary, 'objects');
  await mkdir(scratch);
  const own = await snapshotJob(dirs, record, places, options);
  const largeFiles = own.largeFiles === null ? null : join(scratch, 'lfs');
  const job = { ...own, largeFiles, objects: scratch, otherObjects: dirs.objects };
  const found = await snapshotInThread(job);
  const elsewhere = {
    GIT_OBJECT_DIRECTORY: scratch,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: dirs.objects,
  };
  const git = createGit(dirs.program, dirs.gitDir, elsewhere);
  const tree = await treeOfWork({ ...dirs, git }, record, found.tree);
  if (tree === null)
    return record.first_base === null
      ? { attempt: record.attempt, patch: '', guarded: [] }
      : changesOf(dirs, record.attempt, record.first_base, record.base, part);
  return changesOf({ ...dirs, git }, record.attempt, firstBase(record), tree, part);
};

interface Counts {
  readonly size: {
    readonly files: number;
    readonly insertions: number;
    readonly deletions: number;
  };
  /** As latin1. */
  readonly paths: readonly string[];
  /** The old paths. */
  readonly renamed: readonly string[];
}

const changedLines = /^([^\t]*)\t([^\t]*)\t(.*)$/s;

/**
 * Each commit is its name, then what it changes: a renamed file is one, and has two paths after its
 * numbers. @throws GitError when git passed over one
 */
const countsIn = (numstat: string, commits: readonly string[]): readonly Counts[] => {
  const words = numstat.split('\0');
  let at = 0;
  return commits.map((commit) => {
    if (words[at] !== commit)
      throw new GitError(`the changes cannot be counted: bad object ${commit}`);
    let [files, insertions, deletions] = [0, 0, 0];
    const [paths, renamed]: [string[], string[]] = [[], []];
    for (at += 1; words[at]?.includes('\t'); at += 1) {
      const [, added, removed, path] = changedLines.exec(words[at] ?? '') ?? [];
      files += 1;
      insertions += Number(added) || 0;
      deletions += Number(removed) || 0;
      if (path === '') {
        renamed.push(words[at + 1] ?? '');
        paths.push(words[at + 2] ?? '');
        at += 2;
      } else paths.push(path ?? '');
    }
    return { size: { files, insertions, deletions }, paths, renamed };
  });
};

/** Counts files and lines by which each commit differs from its base. */
export const countChanges = async (
  { git }: Pick<GitDirs, 'git'>,
  works: readonly { readonly base: string; readonly commit: string }[],
  signal?: AbortSignal,
): Promise<readonly Counts[]> => {
  const stat = ['diff-tree', '--stdin', '--always', '-r', '-z', '--numstat', '-M'];
  const input = works.map(({ base, commit }) => `${commit} ${base}\n`).join('');
  const call = git([...stat, ...plainDiffOptions], { input, signal });
  const said = await requireGit('the changes cannot be counted', call);
  return countsIn(
    said.toString('latin1'),
    works.map(({ commit }) => commit),
  );
};

export const workOf = async (dirs: GitDirs, record: WorkRecord): Promise<SavedWork | null> => {
  const { branch, commit, notes } = record;
  const base = firstBase(record);
  if (commit === null) return null;
  const [counts] = await countChanges(dirs, [{ base, commit }]);
  if (counts === undefined) return null;
  const note = generatedNote(counts.paths.map(textOf));
  const all = new Set([...notes, ...(note === null ? [] : [note])]);
  return { branch, base, commit, ...counts.size, notes: [...all] };
};
