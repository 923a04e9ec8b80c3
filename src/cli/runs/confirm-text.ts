import { CallError, type Client } from '../client/client.ts';
import type { Connection } from '../client/connect.ts';
import { readTask } from '../client/task-answers.ts';
import { isYes } from '../output/ask.ts';
import type { Io } from '../output/io.ts';
import { oneLine } from '../output/safe-text.ts';
import { UsageError } from '../words/usage-error.ts';
import type { RunRequest } from './run-task.ts';

const wordsAtMost = 10;

const isExistingTask = (client: Client, word: string): Promise<boolean> =>
  readTask(client, word).then(
    () => true,
    (error: unknown) => {
      if (error instanceof CallError && error.code === 'task_not_found') return false;
      throw error;
    },
  );

/** Tasks that the text names where it says nothing else: `bd-a1 bd-b2`, `show bd-a1`. */
const tasksNamed = async (client: Client, text: string): Promise<readonly string[]> => {
  const words = text.trim().split(/\s+/);
  if (words.length > wordsAtMost || !words.every((word) => /^[\w.+-]{1,128}$/.test(word)))
    return [];
  const ids = words.length === 2 ? words.slice(1) : words;
  const areTasks = await Promise.all(ids.map((word) => isExistingTask(client, word)));
  if (!areTasks.every(Boolean)) return [];
  const [first = ''] = words;
  return words.length === 2 && (await isExistingTask(client, first)) ? words : ids;
};

/**
 * A text that only names tasks is rather a line that was written wrongly than work for an agent: it
 * asks on a terminal before it starts a paid run. @throws UsageError when nobody says yes
 */
export const confirmText = async (
  {
    connection,
    io,
    json,
  }: { readonly connection: Connection; readonly io: Io; readonly json: boolean },
  { role, task: text }: Pick<RunRequest, 'role' | 'task'>,
): Promise<void> => {
  const ids = await tasksNamed(await connection.files(), text);
  if (ids.length === 0) return;
  const shown = JSON.stringify(oneLine(text, 80));
  const question = `create a task ${shown} and run the ${role} on it? [y/N] `;
  const said = json || io.ask === null ? null : await io.ask(question);
  if (said !== null && isYes(said)) return;
  const instead =
    ids.length === 1 ? `agent ${role} ${ids[0]}` : `agent run ${ids.join(' ')} --role ${role}`;
  throw new UsageError(
    `${shown} names ${ids.length === 1 ? 'a task' : 'tasks'} and says nothing to do, so nothing was started; did you mean: ${instead}`,
  );
};
