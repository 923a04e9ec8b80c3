import type { TaskView } from '../../actors/journal/task-view.ts';
import { isJsonObject, textIn } from '../../machines/json.ts';
import type { Client } from '../client/client.ts';
import { tasksIn } from '../client/task-answers.ts';
import type { Io } from '../output/io.ts';

export interface TaskFilter {
  readonly status?: string;
  readonly role?: string;
  readonly label?: string;
}

export interface FetchedTasks {
  /** In the order of their creation. */
  readonly tasks: readonly TaskView[];
  /** How many older ones there are; null when nobody counted them. */
  readonly more: number | null;
}

const pageAtMost = 1_000;

const totalIn = (page: unknown): number | null =>
  isJsonObject(page) && typeof page['total'] === 'number' ? page['total'] : null;

/** The newest `limit` tasks, or all. Warns of tasks that cannot be read. @throws CallError */
export const fetchTasks = async (
  client: Client,
  io: Io,
  filter: TaskFilter,
  limit: number | null,
): Promise<FetchedTasks> => {
  const tasks: TaskView[] = [];
  let total: number | null = null;
  for (let cursor: string | null = null; ; ) {
    const wanted = limit === null ? pageAtMost : Math.min(pageAtMost, limit - tasks.length);
    const page = await client.call('list', {
      ...Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)),
      cursor: cursor ?? undefined,
      ...(limit === null ? {} : { order: 'newest', limit: wanted }),
    });
    tasks.push(...tasksIn(page));
    total ??= totalIn(page);
    cursor = textIn(page, 'next_cursor');
    if (cursor !== null && (limit === null || tasks.length < limit)) continue;
    const note = textIn(page, 'note');
    if (note !== null) io.err(`warning: ${note}`);
    const isAll = cursor === null;
    return {
      tasks: limit === null ? tasks : tasks.reverse(),
      more: isAll ? 0 : total === null ? null : total - tasks.length,
    };
  }
};
