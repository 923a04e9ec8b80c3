import { isFreeText } from '../../actors/engine/task-id.ts';
import type { Flags, Word } from '../declarations/command.ts';
import type { Values } from '../words/check-words.ts';
import { CallError, type Client } from './client.ts';
import type { CommandContext } from './command-context.ts';
import { findTask } from './find-task.ts';

interface Declared {
  readonly words: readonly Word[];
  readonly flags: Flags;
}

const namesOfIds = ({ words, flags }: Declared): readonly string[] => [
  ...words.filter(({ completes }) => completes === 'task').map(({ name }) => name),
  ...Object.entries(flags).flatMap(([name, flag]) =>
    flag.type !== 'switch' && flag.completes === 'task' ? [name] : [],
  ),
];

/** An id that no task has stays: the command checks the rest of its words first. */
const resolveId = async (client: Client, id: string): Promise<string> => {
  try {
    return (await findTask(client, id)).task_id;
  } catch (error) {
    if (error instanceof CallError && error.code === 'task_not_found') return id;
    throw error;
  }
};

/**
 * Completes shortened ids. Free text, which a role takes in the place of an id, and an empty text
 * stay. @throws UsageError for an id that several tasks have
 */
export const resolveIds = async <Args extends object>(
  context: CommandContext,
  declared: Declared,
  args: Args,
): Promise<Args> => {
  const resolve = async (text: unknown): Promise<unknown> => {
    if (typeof text !== 'string' || text === '' || isFreeText(text)) return text;
    const client = await context.connection.files();
    const ids = text.split(',').map((id) => resolveId(client, id));
    return (await Promise.all(ids)).join(',');
  };
  const values: Values = Object.fromEntries(Object.entries(args));
  const resolved = await Promise.all(
    namesOfIds(declared).map(async (name) => {
      const value = values[name];
      const ids = Array.isArray(value) ? Promise.all(value.map(resolve)) : resolve(value);
      return [name, await ids] as const;
    }),
  );
  return { ...args, ...Object.fromEntries(resolved) };
};
