import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { StartConflict } from '../../../machines/agent/agent-context.ts';
import { someOf } from '../../../machines/plural.ts';
import type { Onto } from '../../../machines/review.ts';
import type { AttemptInput, TaskId } from '../../../machines/task.ts';
import { shownName } from '../folders/names.ts';
import { gitlinkMode } from '../folders/walk.ts';
import {
  commitOf,
  commitTree,
  commonOf,
  contains,
  mergeTrees,
  moveBranch,
} from '../git/commits.ts';
import { GitError } from '../git/git.ts';
import type { GitDirs, Repository } from '../git/git-dirs.ts';
import { readIndex } from '../git/index-file.ts';
import { isPresent, objectStore, plainText } from '../git/plain.ts';
import { firstBase, mergeBase, type WorkRecord, type WorkRecords } from '../git/work-records.ts';
import type { OpenWorkspace } from '../port.ts';
import { makeFolder, projectFolder } from './attempt-folder.ts';
import { findWithheld, type Start, startOf } from './start.ts';
import type { RepositoryAtHead } from './stores.ts';
import { unresolvedIn } from './verified-work.ts';
import type { WorkParts } from './work-parts.ts';

/** Files that name a branch which a working tree has, or returns to after a rebase. */
const heads = ['HEAD', 'rebase-merge/head-name', 'rebase-apply/head-name', 'BISECT_START'];

/** The branches that a working tree of the repository has checked out, as `refs/heads/…`. */
export const findCheckedOut = async ({ commonDir }: Repository): Promise<ReadonlySet<string>> => {
  const linked = await readdir(join(commonDir, 'worktrees')).catch(() => []);
  const dirs = [commonDir, ...linked.map((name) => join(commonDir, 'worktrees', name))];
  const texts = await Promise.all(
    dirs.flatMap((dir) => heads.map((name) => plainText(join(dir, name)).catch(() => null))),
  );
  return new Set(
    texts.flatMap((text) => {
      const name = text?.trim().replace(/^ref: /, '') ?? '';
      return name === '' ? [] : [name.startsWith('refs/heads/') ? name : `refs/heads/${name}`];
    }),
  );
};

interface ContinuedBranch {
  readonly start: Start;
  /** Null: the work goes on with a branch of its own, since a working tree has this one. */
  readonly branch: string | null;
  readonly firstBase: string;
  readonly resolves: WorkRecord['resolves'];
}

const namedCommits = 10;

/** The last commits of one side that changed some files, with the tasks whose work they are. */
const commitsOn = async (
  { git }: GitDirs,
  from: string,
  to: string,
  paths: readonly string[],
): Promise<readonly string[]> => {
  const format = '--format=%h %<(100,trunc)%s %(trailers:key=Task,separator=%x2C)';
  const some = paths.slice(0, 100);
  const found = await git(['log', `-${namedCommits}`, format, `${from}..${to}`, '--', ...some]);
  const lines = found.ok ? found.stdout.toString().split('\n') : [];
  return lines.map((line) => line.replace(/ +/g, ' ').trim()).filter(Boolean);
};

/** The work on top of a branch as it is now. */
const startOn = async (
  dirs: GitDirs,
  { name, commit: head }: Onto,
  record: WorkRecord,
  tip: string,
  signal: AbortSignal | undefined,
): Promise<ContinuedBranch> => {
  const { task_id, attempt, branch, role, includes } = record;
  const {
    tree,
    sides,
    conflicts = [],
  } = await mergeTrees(dirs, head, tip, signal, mergeBase(record));
  const parents: [string, string] = [tip, head];
  const message = `Merge ${name} into the work of ${task_id}`;
  const commit = await commitTree(dirs, { tree, parents, message, role }, signal);
  const notes = [
    `Your folder has ${name} as it is now (${head.slice(0, 12)}), and on top the work of attempt ${attempt} (${tip.slice(0, 12)}, branch ${branch}).`,
  ];
  if (conflicts.length > 0) {
    const common = await commonOf(dirs, head, tip);
    const theirs = common === null ? [] : await commitsOn(dirs, common, head, conflicts);
    notes.push(
      `Both sides changed ${someOf(conflicts.map(shownName))}: each place has conflict markers, ${name} first. Keep what both sides are for, and leave no marker.`,
      ...(theirs.length === 0
        ? []
        : [`These commits of ${name} changed them: ${theirs.join('; ')}`]),
    );
  }
  return {
    start: { commit, notes, conflicts: [], includes },
    branch: null,
    firstBase: head,
    resolves: conflicts.length === 0 ? null : { parents, sides: [...sides], paths: [...conflicts] },
  };
};

/**
 * The branch of the attempt that a review sent back, with commits that a person added. Null when the
 * branch is gone or merged: then the attempt begins as the first one did.
 */
const findContinuedBranch = async (
  atHead: RepositoryAtHead,
  records: WorkRecords,
  { taskId, review }: AttemptInput,
  signal: AbortSignal | undefined,
): Promise<ContinuedBranch | null> => {
  const { dirs, head } = atHead;
  const continues = review?.continues ?? null;
  const record = continues === null ? null : await records.read(taskId, continues);
  if (record?.commit == null || record.merged !== null || record.discarded !== null) return null;
  if (record.kind !== dirs.repository.kind) return null;
  const ref = `refs/heads/${record.branch}`;
  const tip = await commitOf(dirs, ref);
  if (tip === null || !(await contains(dirs, tip, record.commit))) return null;
  const onto = review?.rework?.onto ?? { name: "the project's branch", commit: head };
  if (review?.rework !== undefined && !(await contains(dirs, tip, onto.commit)))
    return startOn(dirs, onto, record, tip, signal);
  const isCheckedOut = (await findCheckedOut(dirs.repository)).has(ref);
  return {
    start: {
      commit: tip,
      notes: [`Your folder has the work of attempt ${record.attempt} (branch ${record.branch}).`],
      conflicts: [],
      includes: record.includes,
    },
    branch: isCheckedOut ? null : record.branch,
    firstBase: firstBase(record),
    // Once no marker is left it is work like any other.
    resolves: (await unresolvedIn(dirs, record, tip)).length === 0 ? null : record.resolves,
  };
};

type StartFacts = Pick<OpenWorkspace, 'notes' | 'conflicts' | 'isUsersCommit' | 'isNew'>;

const conflictsIn = ({ conflicts }: WorkRecord): readonly StartConflict[] =>
  conflicts.map(({ task_id, branch, files }) => ({ taskId: task_id as TaskId, branch, files }));

interface Beginning {
  readonly branch: string;
  readonly firstBase: string | null;
  readonly resolves: WorkRecord['resolves'];
  readonly start: Start;
  readonly kind: WorkRecord['kind'];
  readonly withheld: WorkRecord['withheld'];
  readonly head: string;
}

const recordOf = (
  { taskId, attempt, role }: AttemptInput,
  { branch, firstBase, resolves, start, kind, withheld, head }: Beginning,
): WorkRecord => ({
  task_id: taskId,
  attempt,
  role,
  branch,
  base: start.commit,
  kind,
  withheld,
  notes: [],
  left: [],
  kept: [],
  head,
  unsent: false,
  first_base: firstBase,
  resolves,
  conflicts: start.conflicts.map(({ taskId: task_id, files, ...rest }) => ({
    ...rest,
    task_id,
    files: [...files],
  })),
  includes: start.includes,
  verified: null,
  complete: false,
  commit: null,
  closed: false,
  merged: null,
  merged_at: null,
  discarded: null,
  refused: null,
  tested: null,
  landing: null,
  pruned: false,
  size: null,
});

const createStartNotes = ({ options: { filters }, records, placesOf }: WorkParts) => {
  return async (
    { taskId, attempt }: AttemptInput,
    { start, firstBase, withheld: { length: withheld } }: Beginning,
  ): Promise<string[]> => {
    const { index } = placesOf(taskId, attempt);
    const { entries } = readIndex(index, start.commit.length / 2);
    const submodules = [...entries].flatMap(([path, { mode }]) =>
      mode === gitlinkMode
        ? `${shownName(path)} is a submodule and empty in your folder; files that you write there are not saved.`
        : [],
    );
    const isFresh = firstBase === null && attempt > 1;
    const before = isFresh ? await records.read(taskId, attempt - 1) : null;
    const earlier =
      before?.commit == null || before.discarded !== null
        ? []
        : [`An earlier attempt at this task left its work on the branch ${before.branch}.`];
    const some = withheld === 1 ? '1 file' : `${withheld} files`;
    const absent = `${some} of that work are settings that other programs run or trust; you have them as the project's branch has them.`;
    const large = filters.includes('lfs')
      ? ['Files of git-lfs are pointers in your folder; to change one, write the whole file.']
      : [];
    return [
      ...start.notes,
      ...submodules,
      ...earlier,
      ...large,
      ...(withheld === 0 ? [] : [absent]),
    ];
  };
};

const createWorktree = (parts: WorkParts) => {
  const { options, records, removals, branches, placesOf, release } = parts;
  const { projectRoot, copies, sandboxed } = options;
  const notesOf = createStartNotes(parts);
  return async (
    attempt: AttemptInput,
    after: readonly TaskId[],
    atHead: RepositoryAtHead,
    signal: AbortSignal | undefined,
  ): Promise<StartFacts> => {
    const { dirs } = atHead;
    const continued = await findContinuedBranch(atHead, records, attempt, signal);
    const start = continued?.start ?? (await startOf(atHead, records, after, signal));
    const { instead, withheld } = await findWithheld(atHead, start.commit);
    signal?.throwIfAborted();
    const branch = continued?.branch ?? (await branches.make(dirs, attempt, start.commit));
    const places = placesOf(attempt.taskId, attempt.attempt);
    let copyNotes: readonly string[] = [];
    try {
      const isMounted = sandboxed;
      const wanted = {
        start: start.commit,
        head: atHead.head,
        carried: null,
        branch,
        instead,
        projectRoot,
        copies,
        isMounted,
        removals,
        signal,
      };
      copyNotes = await makeFolder(dirs, places, wanted);
      signal?.throwIfAborted();
    } catch (error) {
      await release(places);
      if (branch !== continued?.branch) await moveBranch(dirs, branch, null, start.commit);
      throw error;
    }
    const { kind } = dirs.repository;
    const firstBase = continued?.firstBase ?? null;
    const { head } = atHead;
    const resolves = continued?.resolves ?? null;
    const beginning = { branch, firstBase, resolves, start, kind, withheld: [...withheld], head };
    await records.write(recordOf(attempt, beginning));
    return {
      notes: [...(await notesOf(attempt, beginning)), ...copyNotes],
      conflicts: start.conflicts,
      isUsersCommit: start.commit === head,
      isNew: true,
    };
  };
};

export const createOpening = (parts: WorkParts) => {
  const { records, stores, placesOf } = parts;
  const create = createWorktree(parts);

  return async (
    attempt: AttemptInput,
    after: readonly TaskId[],
    signal: AbortSignal | undefined,
  ): Promise<OpenWorkspace> => {
    const { taskId, attempt: number } = attempt;
    const { top, agentGit } = placesOf(taskId, number);
    const record = await records.read(taskId, number);
    if (record?.closed === true)
      throw new GitError(`attempt ${number} of ${taskId} is over; its work is on ${record.branch}`);
    const opened = async ({ repository }: GitDirs, told: StartFacts): Promise<OpenWorkspace> => {
      const real = await realpath(top);
      const git = (await isPresent(agentGit)) ? { dir: agentGit, at: join(real, '.git') } : null;
      return {
        root: projectFolder(real, repository.prefix),
        readable: [await objectStore(repository.commonDir)],
        git,
        held: repository.trusted
          .filter((path) => path.startsWith(repository.prefix))
          .map((path) => path.slice(repository.prefix.length)),
        ...told,
      };
    };
    if (record !== null && (await isPresent(top)))
      return stores.use(record.kind, (dirs) =>
        opened(dirs, {
          notes: [],
          conflicts: conflictsIn(record),
          isUsersCommit: record.base === record.head,
          isNew: false,
        }),
      );
    return stores.begin(
      async (atHead) => opened(atHead.dirs, await create(attempt, after, atHead, signal)),
      signal,
    );
  };
};
