import { requireId } from '../../actors/engine/queries/task-id.ts';
import { mergeData } from '../../actors/journal/merge-entry.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Merged } from '../../actors/workspace/port.ts';
import type { TaskId } from '../../machines/task.ts';
import { CallError, type Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { readTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { fetchTasks } from '../tasks/fetch-tasks.ts';
import { usageError } from '../words/messages.ts';
import { mergeWord } from '../words/state-words.ts';
import { UsageError } from '../words/usage-error.ts';
import { workElsewhere } from './work-commands.ts';

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

export const mergeLine = (ordered: readonly TaskView[], isAll = false): string =>
  ['agent merge', ...(isAll ? ['--all'] : ordered.map(({ task_id }) => task_id))].join(' ');

export interface MergeArgs {
  readonly task_ids: readonly string[];
  readonly attempt: number | undefined;
  readonly squash: boolean;
  readonly ff: boolean;
  readonly force: boolean;
  readonly verify: boolean;
  readonly all: boolean;
}

type Conflict = Extract<Merged, { status: 'conflict' }>;
type MergedTask = Merged & { readonly task_id: string; readonly attempt: number };

const quietMs = 2_000;

/** A test can take minutes: a person is told where to look. */
const saysThatItTests = ({ io }: CommandContext, taskId: string): (() => void) => {
  const timer = setTimeout(
    () => io.err(`${taskId}: its merge is tested first; to see it: agent logs -f ${taskId}`),
    quietMs,
  );
  return () => clearTimeout(timer);
};

/** @throws CallError when it may not be merged */
const mergeOne = async (
  context: CommandContext,
  client: Client,
  { attempt, squash, ff, force, verify }: MergeArgs,
  { task_id }: TaskView,
): Promise<MergedTask> => {
  const stop = saysThatItTests(context, task_id);
  try {
    const style = squash || ff ? squash : undefined;
    const wanted = { task_id, attempt, force, verify, squash: style };
    return (await client.call('merge', wanted)) as MergedTask;
  } finally {
    stop();
  }
};

/** `agent merge bd-a1 bd-b2 --squash` */
const mergeCommandLine = (
  ids: readonly string[],
  { attempt, squash, ff, force, all }: Omit<MergeArgs, 'task_ids' | 'verify'>,
): string =>
  [
    ...['agent merge', ...(all ? ['--all'] : ids)],
    ...(attempt === undefined ? [] : [`--attempt ${attempt}`]),
    ...(squash ? ['--squash'] : []),
    ...(ff ? ['--ff'] : []),
    ...(force ? ['--force'] : []),
  ].join(' ');

/** Commands that go on after a conflict, in the order in which they are run. */
const wayOn = (
  { branch, moved_on, same_lines, rewritten, detached, failed, merge_first: first }: Conflict,
  left: readonly string[],
  args: MergeArgs,
): readonly string[] => {
  const again = mergeCommandLine(left, args);
  if (first !== undefined) {
    const { task_id, attempt, complete } = first;
    const { squash, ff } = args;
    const before = { attempt, squash, ff, force: !complete, all: false };
    return [mergeCommandLine([task_id], before), again];
  }
  const [id] = left;
  if (failed !== undefined)
    return [
      `agent diff ${id}`,
      `agent review ${id} --comment . "<what must change>" --request-changes`,
      `agent merge ${id} --no-verify`,
    ];
  if (moved_on === true) return [mergeCommandLine(left, { ...args, squash: true, ff: false })];
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
  id: string,
  found: Conflict,
  args: MergeArgs,
): void => {
  const files = named(found.files).map((file) => `\n  ${file}`);
  const output = (found.failed?.output ?? '').trimEnd().replace(/^/gm, '  ');
  const said = output.trim() === '' ? '' : `\n${output}`;
  const steps = wayOn(found, [id], { ...args, all: false }).map((step) => `\n  ${step}`);
  io.err(
    `agent: ${id} is not merged: ${found.why}${files.join('')}${said}\nto go on:${steps.join('')}`,
  );
};

const mergedText = (merged: Exclude<Merged, Conflict>): string => {
  if (merged.status === 'merged') return mergeData(merged).message;
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

/** Merges one task and says what came of it. @returns the exit code @throws CallError for one that is alone */
const land = async (
  context: CommandContext,
  client: Client,
  args: MergeArgs,
  task: TaskView,
  isAlone: boolean,
): Promise<number> => {
  const { io, json } = context;
  const id = task.task_id;
  try {
    const merged = await mergeOne(context, client, args, task);
    if (merged.status === 'nothing' && merged.commit === undefined)
      await requireHere(context, requireId(id), merged.attempt);
    if (json) io.json(merged);
    if (merged.status === 'conflict') {
      printConflict(context, id, merged, args);
      return merged.failed === undefined ? exitCodes.conflict : exitCodes.failed;
    }
    if (!json) io.out(`${id} attempt ${merged.attempt}: ${mergedText(merged)}`);
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof CallError) || isAlone) throw error;
    io.err(`agent: ${id} is not merged: ${error.message}`);
    return exitCodes.conflict;
  }
};

/**
 * Merges tasks in the order of their dependencies; what cannot be merged stops only what depends on it.
 * With `--json` prints a line for each. Exit code 1 when one did not pass its test, else 4 when one is
 * not merged.
 */
export const mergeWork = async (context: CommandContext, args: MergeArgs): Promise<number> => {
  const { io, json, connection } = context;
  const client = await connection.server();
  const ids = await wantedIds(context, client, args);
  const tasks = await inDependencyOrder(ids, (id) => readTask(client, id));
  if (tasks.length === 0 && !json) io.out('all complete work is merged');
  const left = new Map<string, number>();
  for (const task of tasks) {
    const { task_id: id, dependencies } = task;
    const first = dependencies.find((each) => left.has(each));
    if (first !== undefined) {
      io.err(`agent: ${id} is not merged: ${first}, which it depends on, is not`);
      left.set(id, exitCodes.conflict);
      continue;
    }
    const code = await land(context, client, args, task, tasks.length === 1);
    if (code !== exitCodes.done) left.set(id, code);
  }
  if (tasks.length > 1 && !json)
    io.err(`${tasks.length - left.size} of ${tasks.length} tasks: merged, or nothing to merge`);
  const codes = [...left.values()];
  return codes.find((code) => code === exitCodes.failed) ?? codes[0] ?? exitCodes.done;
};
