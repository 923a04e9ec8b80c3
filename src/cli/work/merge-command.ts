import { requireId } from '../../actors/engine/queries/task-id.ts';
import { mergeData } from '../../actors/journal/event-types.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { conflictWords } from '../../machines/conflict-words.ts';
import { remedyFor } from '../../machines/merge-queue/merge-queue-context.ts';
import type { TaskId } from '../../machines/task.ts';
import { CallError, type Result } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { wrapLines } from '../output/wrap.ts';
import { followBegun } from '../runs/run-task.ts';
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
  readonly 'dry-run': boolean;
}

type MergedMany = Result<'merge_many'>;
type LandedTask = MergedMany['landed'][number];
type RefusedTask = MergedMany['refused'][number];
type Conflict = NonNullable<RefusedTask['conflict']>;

const quietMs = 2_000;

/**
 * A test can take minutes: a person is told where to look, also when the server is lost meanwhile. `goesOn`:
 * what is asked for does so when it runs again.
 */
const whileItTests = async <Answer>(
  { io, json }: Pick<CommandContext, 'io' | 'json'>,
  answer: Promise<Answer>,
  ids: readonly string[],
  goesOn = true,
): Promise<Answer> => {
  const [id] = ids;
  const look = id === undefined || ids.length > 1 ? 'agent list' : `agent logs -f ${id}`;
  const say = (text: string) => (json ? undefined : io.err(text));
  const timer = setTimeout(() => say(`it is tested first; to see it: ${look}`), quietMs);
  const interrupted = (): void => {
    say(
      goesOn
        ? 'interrupted: what you alone asked for and has not landed leaves the queue; to see it: agent list'
        : 'interrupted: its test ends, and its work stays as it was',
    );
    process.kill(process.pid, 'SIGINT');
  };
  process.once('SIGINT', interrupted);
  try {
    return await answer;
  } catch (error) {
    if (goesOn && error instanceof CallError && error.code === 'server_lost')
      say('what is in the queue goes on when the server runs; what came of it: agent list');
    throw error;
  } finally {
    clearTimeout(timer);
    process.off('SIGINT', interrupted);
  }
};

/** `agent merge bd-a1 bd-b2 --squash` */
const mergeCommandLine = (
  ids: readonly string[],
  { attempt, squash, ff, force, all }: Omit<MergeArgs, 'task_ids' | 'verify' | 'dry-run'>,
): string =>
  [
    'agent merge',
    ...(all ? ['--all'] : ids),
    ...(attempt === undefined ? [] : [`--attempt ${attempt}`]),
    ...(squash ? ['--squash'] : []),
    ...(ff ? ['--ff'] : []),
    ...(force ? ['--force'] : []),
  ].join(' ');

/** Commands that go on after a conflict, in the order in which they are run. */
const wayOn = (conflict: Conflict, id: string, args: MergeArgs): readonly string[] => {
  const again = mergeCommandLine([id], args);
  const remedy = remedyFor(conflict);
  switch (remedy) {
    case 'merge_first': {
      const { task_id = '', attempt, complete } = conflict.merge_first ?? {};
      const how = { ...args, attempt, force: complete !== true };
      return [mergeCommandLine([task_id], how), again];
    }
    case 'run':
    case 'update':
      return [`agent ${remedy} ${id}`, again];
    case 'reopen':
      return [`agent reopen ${id}`, `agent run ${id}`, again];
    case 'squash':
      return [mergeCommandLine([id], { ...args, squash: true, ff: false })];
    case 'switch_branch':
      return ['git switch <the branch that the work goes to>', again];
    default:
      return [remedy === 'git_merge' ? `git merge ${conflict.branch}` : again];
  }
};

const namedAtMost = 10;

const named = (all: readonly string[]): readonly string[] => {
  const more = all.length - namedAtMost;
  return [...all.slice(0, namedAtMost), ...(more > 0 ? [`and ${more} more`] : [])];
};

const printRefused = (
  { io }: CommandContext,
  refused: RefusedTask,
  args: MergeArgs | null,
  what = 'merged',
): void => {
  const { task_id: id, message, paths = [], output = '', conflict, sent_back: isSent } = refused;
  const files = named(paths).map((file) => `\n  ${file}`);
  const lines = output.trimEnd().replace(/^/gm, '  ');
  const said = lines.trim() === '' ? '' : `\n${lines}`;
  const why = `agent: ${id} is not ${what}: ${message}${files.join('')}${said}`;
  const steps =
    isSent === true
      ? [`agent logs -f ${id}`]
      : conflict === undefined || args === null
        ? []
        : wayOn(conflict, id, { ...args, all: false });
  const goesOn =
    isSent === true ? 'another attempt goes on with it, and is merged then' : 'to go on';
  const way =
    steps.length === 0 ? '' : `\n${goesOn}:${steps.map((step) => `\n  ${step}`).join('')}`;
  io.err(`${why}${way}`);
};

const landedText = ({ status, commit, into = '', tested }: LandedTask): string => {
  if (commit === undefined) return 'there is nothing to merge';
  if (status === 'nothing') return `already merged (${commit.slice(0, 12)})`;
  return mergeData({ into, commit, ...(tested.length === 0 ? {} : { tested }) }).message;
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
const requireWords = ({ task_ids: ids, all, attempt }: MergeArgs): void => {
  if (attempt !== undefined && (all || ids.length > 1))
    throw new UsageError('--attempt is of one task: give one task id with it');
  if (all && ids.length > 0) throw new UsageError('give task ids, or --all, not both');
  if (!all && ids.length === 0)
    throw usageError('word_missing', {
      command: 'merge',
      word: '<task_ids...>',
      usage: 'agent merge <task_ids...>, or agent merge --all',
    });
};

const isUntested = ({ status, tested }: LandedTask): boolean =>
  status === 'merged' && tested.length === 0;

const isOfMerge = ({ code }: RefusedTask): boolean =>
  code === 'verify_failed' || code === 'merge_conflict';

const printPlanned = ({ io, json }: CommandContext, planned: MergedMany['planned']): void => {
  if (planned?.length === 0 && !json) io.out('nothing would be merged');
  for (const task of planned ?? []) {
    const { task_id, attempt, commands, conflicts_with: conflicts } = task;
    const how = commands.length === 0 ? 'untested' : `tested with ${commands.join(', ')}`;
    const but = conflicts === undefined ? '' : `; ${conflictWords(conflicts)}`;
    if (json) io.json(task);
    else io.out(`${task_id} attempt ${attempt}: would be merged, ${how}${but}`);
  }
};

const printAll = async (
  context: CommandContext,
  { landed, refused, planned }: MergedMany,
  args: MergeArgs,
): Promise<void> => {
  const { io, json } = context;
  printPlanned(context, planned);
  for (const task of landed) {
    const { task_id, attempt, commit, tested } = task;
    if (commit === undefined) await requireHere(context, requireId(task_id), attempt);
    if (json) io.json({ task_id, attempt, status: 'merged', commit, tested });
    else io.out(`${task_id} attempt ${attempt}: ${landedText(task)}`);
  }
  for (const task of refused) {
    const { conflict: _, ...line } = task;
    if (json) io.json({ ...line, status: 'refused' });
    printRefused(context, task, args);
  }
  if (planned !== undefined) return;
  const count = landed.length + refused.length;
  if (count === 0 && !json) io.out('all complete work is merged');
  if (!json && args.verify && landed.some(isUntested))
    io.err('no verify command is known; set merge.verify: agent doctor names one');
  const left = refused.map(({ task_id }) => task_id);
  const not = left.length === 0 ? '' : `; not merged: ${named(left).join(', ')}`;
  if (count > 1 && !json)
    io.err(`${landed.length} of ${count} tasks: merged, or nothing to merge${not}`);
};

/**
 * Merges tasks in the order of their dependencies; what cannot be merged stops only what depends on it.
 * With `--json` prints a line for each. Exit code 1 when one did not pass its test, else 4 when one is
 * not merged. @throws CallError for one that is alone and may not be merged
 */
export const mergeWork = async (context: CommandContext, args: MergeArgs): Promise<number> => {
  requireWords(args);
  const { task_ids, all, attempt, squash, ff, force, verify } = args;
  const ids = task_ids.map(requireId);
  const client = await context.connection.server();
  const style = squash || ff ? squash : undefined;
  const dry_run = args['dry-run'];
  const wanted = { task_ids: ids, all, attempt, force, verify, squash: style, dry_run };
  const merged = await whileItTests(context, client.call('merge_many', wanted), ids);
  const { landed, refused } = merged;
  const [first] = refused;
  const isAlone = landed.length + refused.length === 1;
  if (first !== undefined && isAlone && !dry_run && !isOfMerge(first))
    throw new CallError(first.code, first.message, { task_id: first.task_id });
  await printAll(context, merged, args);
  return codeOf(refused);
};

const codeOf = (refused: readonly RefusedTask[]): number => {
  if (refused.length === 0) return exitCodes.done;
  const isRed = refused.some(({ code }) => code === 'verify_failed');
  return isRed ? exitCodes.failed : exitCodes.conflict;
};

export interface UndoArgs {
  readonly task_id: string;
  readonly 'with-dependents': boolean;
}

/** Takes back what landed. Exit codes as of a merge. */
export const undoWork = async (context: CommandContext, args: UndoArgs): Promise<number> => {
  const { io, json, connection } = context;
  const taskId = requireId(args.task_id);
  const client = await connection.server();
  const wanted = { task_id: taskId, with_dependents: args['with-dependents'] };
  const undone = client.call('undo', wanted);
  const { landed, refused } = await whileItTests(context, undone, [taskId]);
  for (const { task_id, attempt, commit, into = '', tested } of landed) {
    const taken = { into, commit: commit ?? '', undone: true };
    const { message } = mergeData({ ...taken, ...(tested.length === 0 ? {} : { tested }) });
    if (json) io.json({ task_id, attempt, status: 'undone', commit, tested });
    else if (commit === undefined) io.out(`${task_id}: the branch does not have its work any more`);
    else {
      const { status } = await client.call('status', { task_id });
      const then =
        status === 'queued'
          ? `the task is open again: agent run ${task_id}`
          : `the task is ${status}`;
      io.out(`${task_id} attempt ${attempt}: ${message}; ${then}`);
    }
  }
  for (const { conflict: _, ...task } of refused) {
    if (json) io.json({ ...task, status: 'refused' });
    else printRefused(context, task, null, 'undone');
  }
  return codeOf(refused);
};

export interface UpdateArgs {
  readonly task_id: string;
  readonly async: boolean;
}

/**
 * Brings the project's branch into the work of a task. Where another attempt goes on with it, follows
 * that, as a role command does.
 */
export const updateWork = async (
  context: CommandContext,
  { task_id, async: isAsync }: UpdateArgs,
): Promise<number> => {
  const { io, json, connection } = context;
  const taskId = requireId(task_id);
  const client = await connection.server();
  const asked = client.call('update', { task_id: taskId });
  const updated = await whileItTests(context, asked, [taskId], false);
  const { status, attempt, tested = [], message = '', paths = [] } = updated;
  const say = (text: string): void => io.out(wrapLines(text, io.width));
  if (json) io.json(updated);
  else if (status === 'refused') io.err(`agent: ${taskId} is not updated: ${message}`);
  else if (status === 'sent_back')
    say(
      `${taskId}: attempt ${attempt} goes on with it, since ${[message, ...named(paths)].join('\n  ')}`,
    );
  else {
    const how = tested.length === 0 ? 'not tested' : `tested with ${tested.join(', ')}`;
    const what = status === 'current' ? 'has all of your branch' : 'has what is new on your branch';
    say(`${taskId} attempt ${attempt}: ${what}, ${how}; take it with: agent merge ${taskId}`);
  }
  if (status === 'refused') return exitCodes.conflict;
  if (status !== 'sent_back') return exitCodes.done;
  if (!isAsync) return followBegun(client, { taskId, attempt, json }, io);
  if (!json) io.err(`see: agent logs -f ${taskId}, agent diff ${taskId}`);
  return exitCodes.done;
};
