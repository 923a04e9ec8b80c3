import { requireId } from '../../actors/engine/queries/task-id.ts';
import { endOfAttempt, refusesMerge } from '../../actors/engine/service/merge-refusal.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Merged, Workspace } from '../../actors/workspace/port.ts';
import { describeRefusal } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import { CallError, type Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { readTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { fetchTasks } from '../tasks/fetch-tasks.ts';
import { history } from '../tasks/logs.ts';
import { usageError } from '../words/messages.ts';
import { mergeWord } from '../words/state-words.ts';
import { UsageError } from '../words/usage-error.ts';
import { openWorkspace, workElsewhere } from './work-commands.ts';

/** Complete work that a merge would take. */
export const isUnmerged = ({ status, work }: TaskView): boolean =>
  status === 'complete' && mergeWord(work) === 'not merged';

/** Null for a dependency that is gone: an edited file may name one. */
const readDependency = async (
  id: string,
  read: (taskId: string) => Promise<TaskView>,
): Promise<TaskView | null> => {
  try {
    return await read(id);
  } catch (error) {
    if (error instanceof CallError && error.code === 'task_not_found') return null;
    throw error;
  }
};

/**
 * The given tasks and all that they depend on, each after those that it depends on. A cycle ends
 * where it began. @throws CallError for a given task that is not there
 */
export const withDependencies = async (
  ids: readonly string[],
  read: (taskId: string) => Promise<TaskView>,
): Promise<readonly TaskView[]> => {
  const wanted = new Set(ids);
  const seen = new Set<string>();
  const ordered: TaskView[] = [];
  const visit = async (id: string): Promise<void> => {
    if (seen.has(id)) return;
    seen.add(id);
    const task = await (wanted.has(id) ? read(id) : readDependency(id, read));
    if (task === null) return;
    for (const dependency of task.dependencies) await visit(dependency);
    ordered.push(task);
  };
  for (const id of ids) await visit(id);
  return ordered;
};

/** The given tasks alone, in the order of `withDependencies`. */
export const inDependencyOrder = async (
  ids: readonly string[],
  read: (taskId: string) => Promise<TaskView>,
): Promise<readonly TaskView[]> => {
  const wanted = new Set(ids);
  if (wanted.size === 1) return Promise.all([...wanted].map(read));
  return (await withDependencies(ids, read)).filter(({ task_id }) => wanted.has(task_id));
};

/** True where each task depends on the one before: then each merge is a fast-forward. */
const isChain = (ordered: readonly TaskView[]): boolean =>
  ordered.every(({ dependencies }, at) => {
    const before = ordered[at - 1];
    return before === undefined || dependencies.includes(before.task_id);
  });

/** `agent merge bd-a1 bd-b2`, with `--squash` where a fast-forward cannot merge all of them. */
export const mergeLine = (ordered: readonly TaskView[], isAll = false): string =>
  [
    'agent merge',
    ...(isAll ? ['--all'] : ordered.map(({ task_id }) => task_id)),
    ...(isChain(ordered) ? [] : ['--squash']),
  ].join(' ');

export interface MergeArgs {
  readonly task_ids: readonly string[];
  readonly attempt: number | undefined;
  readonly config: string | undefined;
  readonly squash: boolean;
  readonly force: boolean;
  readonly all: boolean;
}

interface Merging {
  readonly client: Client;
  readonly workspace: Workspace;
  readonly args: MergeArgs;
}

type Conflict = Extract<Merged, { status: 'conflict' }>;

const endOfAttemptIn = async (
  client: Client,
  taskId: TaskId,
  attempt: number,
): Promise<string | null> => {
  for await (const frame of history(client, taskId)) {
    const end = endOfAttempt(frame, attempt);
    if (end !== null) return end;
  }
  return null;
};

/** @throws CallError when it may not be merged */
const mergeOne = async ({ client, workspace, args }: Merging, task: TaskView) => {
  const { attempt: wanted, squash, force } = args;
  const taskId = requireId(task.task_id);
  const attempt = wanted ?? task.attempt;
  if (attempt === 0)
    throw new CallError('nothing_to_merge', `${taskId} has no attempt`, { task_id: taskId });
  const refused = refusesMerge({
    taskId,
    attempt,
    isLive: task.status === 'started' && attempt === task.attempt,
    isComplete: task.status === 'complete',
    end: await endOfAttemptIn(client, taskId, attempt),
    force,
    isDiscarded: (await workspace.workOf(taskId, attempt))?.discarded_at !== undefined,
  });
  if (refused !== null)
    throw new CallError(refused.code, describeRefusal(refused), { ...refused.facts });
  const merged = await workspace.merge(taskId, attempt, squash ? 'squash' : 'ff', task.title);
  return { attempt, merged };
};

/** `agent merge bd-a1 bd-b2 --squash` */
const mergeCommandLine = (
  ids: readonly string[],
  { attempt, squash, force, all }: Omit<MergeArgs, 'task_ids' | 'config'>,
): string =>
  [
    ...['agent merge', ...(all ? ['--all'] : ids)],
    ...(attempt === undefined ? [] : [`--attempt ${attempt}`]),
    ...(squash ? ['--squash'] : []),
    ...(force ? ['--force'] : []),
  ].join(' ');

/** Commands that go on after a conflict, in the order in which they are run. */
const wayOn = (
  { branch, moved_on, same_lines, rewritten, detached, merge_first: first }: Conflict,
  left: readonly string[],
  args: MergeArgs,
): readonly string[] => {
  const again = mergeCommandLine(left, args);
  if (first !== undefined) {
    const { task_id, attempt, complete } = first;
    const { squash } = args;
    const before = { attempt, squash, force: !complete, all: false };
    return [mergeCommandLine([task_id], before), again];
  }
  if (moved_on === true) return [mergeCommandLine(left, { ...args, squash: true })];
  // As `jj` leaves a project: the same command again would find the same.
  if (detached === true) return ['git switch <the branch that the work goes to>', again];
  if (same_lines !== true && rewritten !== true) return [again];
  const others = left.length > 1 ? [again] : [];
  return [`git merge ${branch}`, ...others];
};

const namedAtMost = 10;

const named = (all: readonly string[]): readonly string[] => {
  const more = all.length - namedAtMost;
  return [...all.slice(0, namedAtMost), ...(more > 0 ? [`and ${more} more`] : [])];
};

const printConflict = (
  { io }: CommandContext,
  conflict: Conflict,
  left: readonly string[],
  args: MergeArgs,
): void => {
  const [id = '', ...others] = left;
  const files = named(conflict.files).map((file) => `\n  ${file}`);
  const remain = others.length === 0 ? '' : `\nnot merged either: ${named(others).join(', ')}`;
  const steps = wayOn(conflict, left, args).map((step) => `\n  ${step}`);
  io.err(
    `agent: ${id} is not merged: ${conflict.why}${files.join('')}${remain}\nto go on:${steps.join('')}`,
  );
};

const mergedText = (merged: Exclude<Merged, Conflict>): string => {
  if (merged.status === 'merged')
    return `merged into ${merged.into} (${merged.commit.slice(0, 12)})`;
  return merged.commit === undefined
    ? 'there is nothing to merge'
    : `already merged (${merged.commit.slice(0, 12)})`;
};

/** Nothing is in this folder. @throws CallError when another server has work of the attempt */
const requireHere = async (
  context: CommandContext,
  taskId: TaskId,
  attempt: number,
): Promise<void> => {
  const found = await workElsewhere(context, taskId, attempt);
  if (found === null || found.patch === '') return;
  throw new CallError(
    'event_not_allowed',
    `the work of ${taskId} is on another server: merge it there, or let work go from server to server (workspace.repository)`,
    { task_id: taskId },
  );
};

const hasUnmergedFiles = ({ work }: TaskView): boolean =>
  work !== undefined &&
  work.files > 0 &&
  work.merged_at === undefined &&
  work.discarded_at === undefined;

/** A refusal names what it leaves when several tasks were to be merged. */
const noteLeft = ({ io }: CommandContext, left: readonly string[]): void => {
  if (left.length > 1) io.err(`not merged: ${named(left).join(', ')}`);
};

/** @throws UsageError */
const wantedIds = async (
  { io }: CommandContext,
  client: Client,
  { task_ids: ids, all, attempt }: MergeArgs,
): Promise<readonly string[]> => {
  if (attempt !== undefined && (all || ids.length > 1))
    throw new UsageError('--attempt is of one task: give one task id with it');
  if (all && ids.length > 0) throw new UsageError('give task ids, or --all, not both');
  if (!all && ids.length === 0)
    throw usageError('word_missing', {
      command: 'merge',
      word: '<task_ids...>',
      usage: 'agent merge <task_ids...>, or agent merge --all',
    });
  if (!all) return ids.map(requireId);
  const { tasks } = await fetchTasks(client, io, { status: 'complete' }, null);
  return tasks.filter(isUnmerged).map(({ task_id }) => task_id);
};

/**
 * Merges tasks in the order of their dependencies, up to the first that cannot be merged. With
 * `--json` prints a line for each. Exit code 4 after a conflict.
 */
export const mergeWork = async (context: CommandContext, args: MergeArgs): Promise<number> => {
  const { io, json, connection } = context;
  const client = await connection.files();
  const ids = await wantedIds(context, client, args);
  const tasks = await inDependencyOrder(ids, (id) => readTask(client, id));
  if (tasks.length === 0 && !json) io.out('all complete work is merged');
  const workspace = await openWorkspace(context, args.config);
  for (const [at, task] of tasks.entries()) {
    const left = [task, ...tasks.slice(at + 1).filter(hasUnmergedFiles)].map(
      ({ task_id }) => task_id,
    );
    const { attempt, merged } = await mergeOne({ client, workspace, args }, task).catch(
      (error: unknown) => {
        noteLeft(context, left);
        throw error;
      },
    );
    if (merged.status === 'nothing' && merged.commit === undefined)
      await requireHere(context, requireId(task.task_id), attempt);
    if (merged.status === 'merged')
      await connection.logMerge(requireId(task.task_id), attempt, merged);
    if (json) io.json({ task_id: task.task_id, attempt, ...merged });
    if (merged.status === 'conflict') {
      printConflict(context, merged, left, args);
      return exitCodes.conflict;
    }
    if (!json) io.out(`${task.task_id} attempt ${attempt}: ${mergedText(merged)}`);
  }
  return exitCodes.done;
};
