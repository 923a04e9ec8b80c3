import { requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { messageOf } from '../../machines/message-of.ts';
import { isRoleLabel, roleLabel } from '../../machines/role-label.ts';
import type { Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask, readTask } from '../client/task-answers.ts';
import { hasTerminal } from '../output/editor.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { oneLine } from '../output/safe-text.ts';
import { UsageError } from '../words/usage-error.ts';
import { fetchTasks } from './fetch-tasks.ts';
import { editText, splitText, textFrom } from './read-input.ts';

export interface EditArgs {
  readonly task_id: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly file: string | undefined;
  readonly priority: number | undefined;
  readonly label: readonly string[] | undefined;
  readonly role: string | undefined;
}

type EditFields = Readonly<Record<string, unknown>>;

const editedFieldsOf = (
  { title, description, file, priority, label }: EditArgs,
  env: NodeJS.ProcessEnv,
) => {
  const text =
    description === undefined && file === undefined
      ? null
      : textFrom({ given: description, file }, env);
  return {
    title,
    description: text ?? undefined,
    priority,
    // `--label ''` removes all.
    labels: label === undefined ? undefined : label.filter((each) => each !== ''),
  };
};

/** A description that begins with the title is shown once. */
const fieldsInEditor = ({ title, description }: TaskView, env: NodeJS.ProcessEnv): EditFields => {
  const isOneText = splitText(description).title === title;
  const text = editText(isOneText ? description : `${title}\n\n${description}`, env);
  const edited = splitText(text);
  return {
    title: edited.title,
    description: isOneText || edited.rest === '' ? text : edited.rest,
  };
};

/** The role is a label; the other labels stay unless they are given. */
const withRole = async (
  client: Client,
  { task_id, role, label }: EditArgs,
  fields: EditFields,
): Promise<EditFields> => {
  if (role === undefined) return fields;
  const labels = label ?? (await readTask(client, task_id)).labels;
  const others = labels.filter((each) => each !== '' && !isRoleLabel(each));
  return { ...fields, labels: [...others, roleLabel(role)] };
};

/** Without a flag, opens an editor. */
export const editTask = async (context: CommandContext, args: EditArgs): Promise<number> => {
  const { connection, io, env, json } = context;
  const given: EditFields = editedFieldsOf(args, env);
  const client = await connection.files();
  const isGiven =
    Object.values(given).some((value) => value !== undefined) || args.role !== undefined;
  if (!isGiven && !hasTerminal())
    throw new UsageError(
      `edit needs a change: agent edit ${args.task_id} --title <text>; see: agent edit --help`,
    );
  const fields = isGiven
    ? await withRole(client, args, given)
    : fieldsInEditor(await readTask(client, args.task_id), env);
  const task = await callForTask(client, 'edit', { task_id: args.task_id, ...fields });
  if (json) io.json(task);
  else io.out(`${task.task_id} edited`);
  return exitCodes.done;
};

interface Refused {
  readonly id: string;
  readonly error: unknown;
}

/** Tries each once. @returns what was refused */
const deleteEach = async (
  { io, json }: CommandContext,
  client: Client,
  ids: readonly string[],
): Promise<readonly Refused[]> => {
  const refused: Refused[] = [];
  for (const id of ids) {
    try {
      const task = await callForTask(client, 'delete', { task_id: id });
      if (json) io.json(task);
      else io.out(`${task.task_id} deleted`);
    } catch (error) {
      refused.push({ id, error });
    }
  }
  return refused;
};

/**
 * Deletes tasks in any order: one that is refused is tried again as long as others go, since it may
 * be one of them that depends on it. @throws the last refusal
 */
export const deleteTasks = async (
  context: CommandContext,
  given: readonly string[],
): Promise<number> => {
  const client = await context.connection.files();
  let left: readonly string[] = [...new Set(given)];
  for (;;) {
    const refused = await deleteEach(context, client, left);
    const last = refused.at(-1);
    if (last === undefined) return exitCodes.done;
    if (refused.length === left.length) {
      for (const { error } of refused.slice(0, -1)) context.io.err(`agent: ${messageOf(error)}`);
      throw last.error;
    }
    left = refused.map(({ id }) => id);
  }
};

/** One after the other: what was changed before a refusal stays. `prerequisites`: at least one */
export const changeDependencies = async (
  { connection, io, json }: CommandContext,
  method: 'add_dependency' | 'remove_dependency',
  dependent: string,
  prerequisites: readonly string[],
): Promise<number> => {
  const client = await connection.files();
  const task_id = requireId(dependent);
  const all = prerequisites.map(requireId);
  for (const depends_on of all) await callForTask(client, method, { task_id, depends_on });
  const task = await readTask(client, task_id);
  if (json) io.json(task);
  else io.out(`${task.task_id} depends on ${task.dependencies.join(', ') || 'nothing'}`);
  return exitCodes.done;
};

interface Branch {
  readonly task_id: string;
  readonly title: string;
  readonly status: string;
  readonly depends_on: readonly Branch[];
  /** Its dependencies are where it was shown first. */
  readonly shown_above?: true;
}

/** Each task has its dependencies once: many paths lead to one of a graph, and a cycle has no end. */
const branchOf = (id: string, tasks: ReadonlyMap<string, TaskView>, shown: Set<string>): Branch => {
  const task = tasks.get(id);
  const dependencies = task?.dependencies ?? [];
  const isAgain = shown.has(id) && dependencies.length > 0;
  shown.add(id);
  return {
    task_id: id,
    title: task?.title ?? '(not in the tracker)',
    status: task?.status ?? 'missing',
    depends_on: isAgain ? [] : dependencies.map((next) => branchOf(next, tasks, shown)),
    ...(isAgain ? { shown_above: true } : {}),
  };
};

const dependencyLines = (
  { task_id, title, status, depends_on, shown_above }: Branch,
  depth = 0,
): readonly string[] => [
  `${'  '.repeat(depth)}${task_id}  ${status}  ${oneLine(title)}${shown_above === true ? '  (see above)' : ''}`,
  ...depends_on.flatMap((branch) => dependencyLines(branch, depth + 1)),
];

/** The tasks that are not complete, without those that another of them waits for. */
const openRoots = (tasks: readonly TaskView[]): readonly string[] => {
  const open = tasks.filter(({ status }) => status !== 'complete');
  const below = new Set(open.flatMap(({ dependencies }) => dependencies));
  return open.map(({ task_id }) => task_id).filter((id) => !below.has(id));
};

/** Without a task, the trees of all that is not complete. */
export const dependencyTree = async (
  { connection, io, json }: CommandContext,
  taskId: string | undefined,
): Promise<number> => {
  const client = await connection.files();
  const only = taskId === undefined ? null : await readTask(client, requireId(taskId));
  const { tasks } = await fetchTasks(client, io, {}, null);
  const byId = new Map(tasks.map((task) => [task.task_id, task]));
  const shown = new Set<string>();
  const roots = only === null ? openRoots(tasks) : [only.task_id];
  const branches = roots.map((id) => branchOf(id, byId, shown));
  if (json) io.json(only === null ? branches : branches[0]);
  else if (branches.length === 0) io.err('every task is complete');
  else io.out(branches.flatMap((branch) => dependencyLines(branch)).join('\n'));
  return exitCodes.done;
};
