import type { TaskView } from '../../actors/journal/task-view.ts';
import { isJsonObject } from '../../machines/json.ts';
import { CallError, type Client, type Params, type TaskMethod } from './client.ts';

/**
 * Checks the fields that every command reads, without a schema: `list` and `show` load almost
 * nothing (ADR 0005).
 */
const isTask = (value: unknown): value is TaskView =>
  isJsonObject(value) &&
  ['task_id', 'title', 'status', 'phase'].every((key) => typeof value[key] === 'string') &&
  Array.isArray(value['dependencies']);

const notTasks = (): CallError =>
  new CallError(
    'internal',
    'the server answered with something that is not a task; is it another version?',
  );

/** For methods that answer with a task. @throws CallError */
export const callForTask = async <Name extends TaskMethod>(
  client: Client,
  method: Name,
  params: Params<Name>,
): Promise<TaskView> => {
  const answer: unknown = await client.call(method, params);
  if (!isTask(answer)) throw notTasks();
  return answer;
};

/** @throws CallError */
export const readTask = (client: Client, taskId: string): Promise<TaskView> =>
  callForTask(client, 'status', { task_id: taskId });

/** The tasks of one page of `list`. @throws CallError */
export const tasksIn = (page: unknown): readonly TaskView[] => {
  const tasks: unknown = isJsonObject(page) ? page['tasks'] : null;
  if (!Array.isArray(tasks) || !tasks.every(isTask)) throw notTasks();
  return tasks;
};
