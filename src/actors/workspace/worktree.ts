import { cp, lstat, mkdir, realpath, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Role, TaskId } from '../../machines/task.ts';
import type { AttemptInput } from '../../machines/task-context.ts';
import { createMutex } from '../mutex.ts';
import { protectedPaths, protectionOf } from '../sandbox/protected-paths.ts';
import { GitError, type GitOptions, required } from './git.ts';
import { mergeInto } from './merge.ts';
import type { Changes, OpenWorkspace, SavedWork, StartConflict, Workspace } from './port.ts';
import { asAgent, combine, commitTree, contains, headOf, type Repository, refuseFilters } from './repository.ts';
import { createWorkRecords, type WorkRecord } from './work-records.ts';

export interface WorktreeOptions {
  readonly repository: Repository;
  readonly projectRoot: string;
  /** Where the worktrees and their records are, outside the project. */
  readonly folder: string;
  /** What is copied into every worktree although git does not know it, such as `node_modules`; relative to the project. */
  readonly copies: readonly string[];
}

const branchOf = (taskId: TaskId, attempt: number): string => `agent/${taskId}/${attempt}`;
const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

const conflictsIn = ({ conflicts }: WorkRecord): readonly StartConflict[] =>
  conflicts.map(({ task_id, branch, files }) => ({ taskId: task_id as TaskId, branch, files }));

interface Start {
  readonly commit: string;
  readonly notes: readonly string[];
  readonly conflicts: readonly StartConflict[];
}

/** Each attempt works in a worktree of its own, on a branch of its own, which is all that is left of it (ADR 0014). */
export const createWorktreeWorkspace = ({ repository, projectRoot, folder, copies }: WorktreeOptions): Workspace => {
  const { git, gitDir, commonDir, prefix } = repository;
  const records = createWorkRecords(folder);
  // git's own locks make the second of two at once fail instead of wait.
  const inTurn = createMutex();
  const inside = ({ git_dir, task_id, attempt }: WorkRecord) => ({
    gitDir: git_dir,
    workTree: records.folderOf(task_id, attempt),
  });

  /** The project's commit with the work of earlier tasks that it does not have yet. */
  const startOf = async (after: readonly TaskId[]): Promise<Start> => {
    let commit = await headOf(repository);
    const notes: string[] = [];
    const conflicts: StartConflict[] = [];
    for (const taskId of after) {
      const record = await records.latest(taskId);
      if (record?.commit == null) continue;
      const { branch } = record;
      const has = record.merged ?? record.commit;
      if (await contains(repository, commit, has)) continue;
      if (await contains(repository, record.commit, commit)) {
        commit = record.commit;
        notes.push(
          `Your folder has the work of ${taskId} (branch ${branch}), which is not in the project's branch yet.`,
        );
        continue;
      }
      const merged = await combine(repository, commit, record.commit).catch((error: unknown) => ({
        conflicts: [],
        why: words(error),
      }));
      if ('conflicts' in merged) {
        const why = 'why' in merged ? merged.why : merged.conflicts.join(', ');
        notes.push(`The work of ${taskId} is on the branch ${branch} and could not be put into your folder: ${why}.`);
        conflicts.push({ taskId, branch, files: merged.conflicts });
        continue;
      }
      const message = `Merge the work of ${taskId}`;
      commit = await commitTree(repository, {
        tree: merged.tree,
        parents: [commit, record.commit],
        message,
        role: record.role,
      });
      notes.push(`Your folder has the work of ${taskId} (branch ${branch}), which is not in the project's branch yet.`);
    }
    return { commit, notes, conflicts };
  };

  /** A branch of that name may be left from a state folder that is gone; nobody's branch is ever moved. */
  const freeBranch = async (taskId: TaskId, attempt: number): Promise<string> => {
    for (let n = 1; ; n += 1) {
      const name = n === 1 ? branchOf(taskId, attempt) : `${branchOf(taskId, attempt)}-${n}`;
      if (!(await git(['show-ref', '--verify', '--quiet', `refs/heads/${name}`], { gitDir })).ok) return name;
    }
  };

  const copyInto = async (top: string, signal: AbortSignal | undefined): Promise<void> => {
    const filter = (): boolean => signal?.aborted !== true;
    for (const path of copies) {
      const [from, to] = [join(projectRoot, path), join(top, prefix, path)];
      if ((await isThere(from)) && !(await isThere(to)))
        await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true, filter });
    }
  };

  const create = async (
    { taskId, attempt, role }: AttemptInput,
    after: readonly TaskId[],
    signal: AbortSignal | undefined,
  ): Promise<Start> => {
    await refuseFilters(repository);
    const start = await startOf(after);
    const before = attempt > 1 ? await records.read(taskId, attempt - 1) : null;
    const notes =
      before?.commit == null
        ? start.notes
        : [...start.notes, `An earlier attempt at this task left its work on the branch ${before.branch}.`];
    const branch = await freeBranch(taskId, attempt);
    signal?.throwIfAborted();
    const top = records.folderOf(taskId, attempt);
    await mkdir(dirname(top), { recursive: true, mode: 0o700 });
    // What a crash left half made, before there was a record of it.
    await rm(top, { recursive: true, force: true });
    await git(['worktree', 'prune'], { gitDir });
    const add = ['worktree', 'add', '--quiet', '-b', branch, top, start.commit];
    await required(`no worktree could be made for ${branch}`, git(add, { gitDir }));
    const git_dir = await required(
      'the worktree has no git directory',
      git(['rev-parse', '--absolute-git-dir'], { cwd: top }),
    );
    await copyInto(top, signal);
    if (signal?.aborted) {
      await removeTree(top);
      await git(['update-ref', '-d', `refs/heads/${branch}`, start.commit], { gitDir });
      throw signal.reason;
    }
    await records.write({
      ...{ task_id: taskId, attempt, role, branch, base: start.commit, git_dir },
      conflicts: start.conflicts.map(({ taskId: task_id, files, ...rest }) => ({
        ...rest,
        task_id,
        files: [...files],
      })),
      ...{ commit: null, closed: false, merged: null },
    });
    return { ...start, notes };
  };

  const openNow = async (
    attempt: AttemptInput,
    after: readonly TaskId[],
    signal: AbortSignal | undefined,
  ): Promise<OpenWorkspace> => {
    const top = records.folderOf(attempt.taskId, attempt.attempt);
    const record = await records.read(attempt.taskId, attempt.attempt);
    if (record?.closed === true)
      throw new GitError(`attempt ${attempt.attempt} of ${attempt.taskId} is over; its work is on ${record.branch}`);
    const isKnown = record !== null && (await isThere(top));
    const { notes, conflicts } = isKnown
      ? { notes: [], conflicts: conflictsIn(record) }
      : await create(attempt, after, signal);
    return { root: await realpath(join(top, prefix)), readable: [commonDir, join(top, '.git')], notes, conflicts };
  };

  /** Everything but what agents may not write. */
  const pathsToKeep = [
    prefix === '' ? '.' : prefix,
    ...protectedPaths
      .filter(({ protection }) => protection === 'held')
      .flatMap(({ name }) => [name, `${name}/**`].map((path) => `:(exclude,top,glob,icase)${prefix}**/${path}`)),
  ];

  const commitAll = async (record: WorkRecord, title: string): Promise<void> => {
    await refuseFilters(repository);
    const here = inside(record);
    await required('the changes could not be added', git(['add', '--all', '--', ...pathsToKeep], here));
    if ((await git(['diff', '--cached', '--quiet', '--no-ext-diff', '--no-textconv'], here)).ok) return;
    const message = `${title}\n\nTask: ${record.task_id}\nAttempt: ${record.attempt}\nRole: ${record.role}\n`;
    const commit = ['commit', '--quiet', '--no-verify', '--cleanup=verbatim', '-F', '-'];
    await required(
      'the changes could not be committed',
      git(commit, { ...here, input: message, env: asAgent(record.role) }),
    );
  };

  const remove = (record: WorkRecord): Promise<void> => removeTree(inside(record).workTree);
  const removeTree = async (workTree: string): Promise<void> => {
    const removed = await git(['worktree', 'remove', '--force', workTree], { gitDir });
    if (!removed.ok) {
      await rm(workTree, { recursive: true, force: true });
      await git(['worktree', 'prune'], { gitDir });
    }
  };

  const workOf = async ({ branch, base, commit }: WorkRecord): Promise<SavedWork | null> => {
    if (commit === null) return null;
    const stat = ['diff', '--numstat', '--no-renames', '--no-ext-diff', '--no-textconv', base, commit];
    const lines = (await required('what was changed cannot be told', git(stat, { gitDir })))
      .split('\n')
      .filter(Boolean);
    const sum = (column: number): number =>
      lines.reduce((total, line) => total + (Number(line.split('\t')[column]) || 0), 0);
    return { branch, base, commit, files: lines.length, insertions: sum(0), deletions: sum(1) };
  };

  const saveNow = async ({ taskId, attempt }: AttemptInput, title: string): Promise<SavedWork | null> => {
    const record = await records.read(taskId, attempt);
    if (record === null) return null;
    const { branch, base } = record;
    const here = inside(record);
    const isHere = await isThere(here.workTree);
    if (record.closed) {
      if (isHere) await remove(record);
      return workOf(record);
    }
    if (isHere) await commitAll(record, title);
    const tip = isHere
      ? await required('its commit is not there', git(['rev-parse', '--verify', 'HEAD^{commit}'], here))
      : (await git(['rev-parse', '--verify', '--quiet', `refs/heads/${branch}^{commit}`], { gitDir })).stdout || base;
    const commit = tip === base ? null : tip;
    // A command without a sandbox may have left the branch; what it made is kept under the name that was promised.
    if (commit !== null)
      await required(
        'its branch could not be kept',
        git(['update-ref', '--no-deref', `refs/heads/${branch}`, commit], { gitDir }),
      );
    // A branch without a change is nobody's work.
    if (commit === null) await git(['update-ref', '-d', `refs/heads/${branch}`, base], { gitDir });
    const closed = { ...record, commit, closed: true };
    await records.write(closed);
    await remove(record);
    if (!isHere)
      throw new GitError(
        `the worktree ${here.workTree} is gone: what attempt ${attempt} had not committed there is lost${commit === null ? '' : `; what it had is on ${branch}`}`,
      );
    return workOf(closed);
  };

  /** Of an attempt that is at work: as if it were saved now, in an index of its own. */
  const liveDiff = async (record: WorkRecord): Promise<Changes> => {
    await refuseFilters(repository);
    const index = join(record.git_dir, `index-of-diff-${process.pid}`);
    const here = { ...inside(record), env: { GIT_INDEX_FILE: index } };
    try {
      await required('its base cannot be read', git(['read-tree', record.base], here));
      await required('its changes cannot be read', git(['add', '--all', '--', ...pathsToKeep], here));
      return await changesOf(record.attempt, ['--cached', record.base], here);
    } finally {
      await rm(index, { force: true });
    }
  };

  const changesOf = async (attempt: number, between: readonly string[], where: GitOptions): Promise<Changes> => {
    const plain = ['diff', '--no-ext-diff', '--no-textconv', '--no-color'];
    const ask = (flags: readonly string[]) =>
      required('its changes cannot be read', git([...plain, ...flags, ...between], where));
    const [patch, names] = [await ask(['--full-index']), await ask(['--name-only', '--no-renames', '-z'])];
    return { attempt, patch, guarded: names.split('\0').filter((name) => protectionOf(name) !== null) };
  };

  return {
    mode: 'worktree',
    describe: () => 'a git worktree for each attempt',
    open: (attempt, after = [], signal) =>
      inTurn(() => openNow(attempt, after, signal), signal === undefined ? {} : { signal }),
    alone: (work) => work(),
    save: (attempt, title) => inTurn(() => saveNow(attempt, title)),
    sweep: async (isOver) => {
      const failed: string[] = [];
      for (const { task_id, attempt, role, closed } of await records.all()) {
        const taskId = task_id as TaskId;
        if (closed || !isOver(taskId, attempt)) continue;
        const saved = inTurn(() => saveNow({ taskId, attempt, role: role as Role, options: {} }, `Work of ${taskId}`));
        await saved.catch((error: unknown) => failed.push(`${taskId}#${attempt}: ${words(error)}`));
      }
      return failed;
    },
    merge: (taskId, attempt, mode, title, signal) =>
      inTurn(
        async () => {
          const record = await records.read(taskId, attempt);
          if (record?.commit == null || mode === 'none') return { status: 'nothing' };
          const { branch, commit, role } = record;
          const merged = await mergeInto(repository, {
            branch,
            commit,
            mode,
            message: `${title}\n\nTask: ${taskId}\nAttempt: ${attempt}\n`,
            role,
            signal,
          });
          if (merged.status === 'merged') await records.write({ ...record, merged: merged.commit });
          return merged;
        },
        signal === undefined ? {} : { signal },
      ),
    diff: async (taskId, attempt) => {
      const record = attempt === null ? await records.latest(taskId) : await records.read(taskId, attempt);
      if (record === null) return null;
      const { base, commit, closed } = record;
      if (!closed) return inTurn(() => liveDiff(record));
      if (commit === null) return { attempt: record.attempt, patch: '', guarded: [] };
      return changesOf(record.attempt, [base, commit], { gitDir });
    },
  };
};
