import { isFreeText } from '../actors/engine/task-id.ts';
import { findTask } from './client/find-task.ts';
import type { Flags, Word } from './table/command.ts';
import type { CommandContext } from './tasks/commands.ts';

type Values = Readonly<Record<string, unknown>>;

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

/**
 * Completes shortened ids. Free text, which a role takes in the place of an id, and an empty text
 * stay. @throws UsageError for an id that several tasks have
 */
export const resolveIds = async <Args extends object>(
  { connection }: CommandContext,
  declared: Declared,
  args: Args,
): Promise<Args> => {
  const resolve = async (text: unknown): Promise<unknown> => {
    if (typeof text !== 'string' || text === '' || isFreeText(text)) return text;
    const client = await connection.files();
    const ids = text.split(',').map(async (id) => (await findTask(client, id)).task_id);
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
