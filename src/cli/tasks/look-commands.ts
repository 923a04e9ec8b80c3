import type { TaskView } from '../../actors/journal/task-view.ts';
import type { Client } from '../client/client.ts';
import { textIn } from '../client/json.ts';
import { readTask, tasksIn } from '../client/task-answers.ts';
import { UsageError } from '../config/project.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { renderList, renderTask } from '../output/render.ts';

/**
 * `list` and `show` are the most frequent commands, so this file and its imports load almost
 * nothing (ADR 0005).
 */

/** Without a server, a started task is not running. */
const warnStranded = (client: Client, tasks: readonly TaskView[], io: Io): void => {
  const stranded = tasks.filter(
    ({ status, phase }) => status === 'started' || phase === 'waiting_for_slot',
  );
  if (client.live || stranded.length === 0) return;
  const ids = stranded.map(({ task_id }) => task_id).join(', ');
  io.err(`note: no server runs, so ${ids} makes no progress until the next one starts`);
};

export const fetchEveryTask = async (
  client: Client,
  io: Io,
  status: string | undefined,
): Promise<readonly TaskView[]> => {
  const tasks: TaskView[] = [];
  for (let cursor: string | null = null; ; ) {
    const params = {
      ...(status === undefined ? {} : { status }),
      ...(cursor === null ? {} : { cursor }),
    };
    const page = await client.call('list', params);
    tasks.push(...tasksIn(page));
    cursor = textIn(page, 'next_cursor');
    if (cursor !== null) continue;
    const note = textIn(page, 'note');
    if (note !== null) io.err(`warning: ${note}`);
    return tasks;
  }
};

const ourStatuses: readonly string[] = ['queued', 'started', 'complete', 'failed', 'cancelled'];

export const listTasks = async (
  client: Client,
  io: Io,
  json: boolean,
  status: string | undefined,
): Promise<number> => {
  const tasks = await fetchEveryTask(client, io, status);
  if (tasks.length === 0 && status !== undefined && !ourStatuses.includes(status))
    throw new UsageError(
      `no task has the status ${status}; the statuses are ${ourStatuses.join(', ')}`,
    );
  warnStranded(client, tasks, io);
  if (json) io.json(tasks);
  else if (tasks.length > 0) io.out(renderList(tasks));
  else
    io.err(
      status === undefined
        ? 'no tasks; create one with: agent create "<description>"'
        : `no ${status} tasks`,
    );
  return exitCodes.done;
};

export const showTask = async (
  client: Client,
  io: Io,
  json: boolean,
  taskId: string,
): Promise<number> => {
  const task = await readTask(client, taskId);
  warnStranded(client, [task], io);
  if (json) io.json(task);
  else io.out(renderTask(task));
  return exitCodes.done;
};
