import { requireId } from '../../actors/engine/task-id.ts';
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
}

/** A cycle stops where a task appears below itself. */
const branchOf = (
  id: string,
  tasks: ReadonlyMap<string, TaskView>,
  above: readonly string[] = [],
): Branch => {
  const task = tasks.get(id);
  const below = above.includes(id) ? [] : (task?.dependencies ?? []);
  return {
    task_id: id,
    title: task?.title ?? '(not in the tracker)',
    status: task?.status ?? 'missing',
    depends_on: below.map((next) => branchOf(next, tasks, [...above, id])),
  };
};

const dependencyLines = (
  { task_id, title, status, depends_on }: Branch,
  depth = 0,
): readonly string[] => [
  `${'  '.repeat(depth)}${task_id}  ${status}  ${oneLine(title)}`,
  ...depends_on.flatMap((branch) => dependencyLines(branch, depth + 1)),
];

export const dependencyTree = async (
  { connection, io, json }: CommandContext,
  taskId: string,
): Promise<number> => {
  const client = await connection.files();
  const { task_id } = await readTask(client, requireId(taskId));
  const tasks = new Map(
    (await fetchTasks(client, io, {}, null)).tasks.map((task) => [task.task_id, task]),
  );
  const branch = branchOf(task_id, tasks);
  if (json) io.json(branch);
  else io.out(dependencyLines(branch).join('\n'));
  return exitCodes.done;
};
