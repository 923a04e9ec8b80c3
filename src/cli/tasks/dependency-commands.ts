import { requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask, readTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { oneLine } from '../output/safe-text.ts';
import { fetchTasks } from './fetch-tasks.ts';

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
