import { messageOf } from '../../machines/message-of.ts';
import type { Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';

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
