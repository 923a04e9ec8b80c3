import type { TaskView } from '../../actors/journal/task-view.ts';
import { closest } from '../output/closest.ts';
import { UsageError } from '../words/usage-error.ts';
import { CallError, type Client } from './client.ts';
import { readTask, tasksIn } from './task-answers.ts';

const matchesAtMost = 8;

const ambiguousId = (text: string, found: readonly TaskView[]): UsageError => {
  const shown = found
    .slice(0, matchesAtMost)
    .map(({ task_id, title }) => `\n  ${task_id}  ${title}`);
  const more = found.length > matchesAtMost ? '\n  …' : '';
  return new UsageError(
    `${JSON.stringify(text)} is in the ids of several tasks; give more of one:${shown.join('')}${more}`,
  );
};

/** The task of an id, or of a beginning or end that only one id has. @throws CallError, UsageError */
export const findTask = async (client: Client, text: string): Promise<TaskView> => {
  try {
    return await readTask(client, text);
  } catch (error) {
    const isUnknown = error instanceof CallError && error.code === 'task_not_found';
    if (!isUnknown || !/^[\w.+-]{1,128}$/.test(text)) throw error;
    const found = tasksIn(await client.call('list', { id: text, limit: matchesAtMost + 1 }));
    const [only] = found;
    if (only === undefined) throw error;
    if (found.length > 1) throw ambiguousId(text, found);
    return only;
  }
};

const looksAtMost = 200;

/**
 * The id that a wrong one was meant to be; null when none is close. Of many tasks it looks only at
 * those whose ids begin or end as the wrong one does.
 */
export const nearestId = async (client: Client, wrong: string): Promise<string | null> => {
  const own = wrong.toLowerCase().replace(/^.*-(?=[^-]+$)/, '');
  if (!/^[\w.+-]{3,64}$/.test(own)) return null;
  const half = Math.ceil(own.length / 2);
  const parts = [own.slice(0, half), own.slice(-half)];
  const pages = await Promise.all(
    parts.map((id) => client.call('list', { id, limit: looksAtMost })),
  );
  return closest(
    wrong,
    pages.flatMap((page) => tasksIn(page).map(({ task_id }) => task_id)),
  );
};
