import { z } from 'zod';
import { requireId } from '../../actors/engine/queries/task-id.ts';
import { taskViewSchema } from '../../actors/journal/task-view.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { removedText } from '../output/render/render-task.ts';
import { usageError } from '../words/messages.ts';
import { UsageError } from '../words/usage-error.ts';

const replayedSchema = z.looseObject({
  steps: z.array(
    z.object({
      seq: z.number(),
      at: z.string(),
      attempt: z.number(),
      machine: z.enum(['task', 'agent', 'workflow', 'mergeQueue', 'pullRequest', 'source']),
      event: z.string(),
      state: z.unknown(),
      same: z.boolean(),
    }),
  ),
  context: z.object({ task: z.unknown(), agent: z.unknown() }),
  difference: z.string().nullable(),
  history_removed: taskViewSchema.shape.history_removed,
});

/** `{"started":"working"}` gives `started.working`. */
const statePath = (value: unknown): string =>
  typeof value === 'object' && value !== null
    ? Object.entries(value)
        .map(([key, inner]) => `${key}.${statePath(inner)}`)
        .join(', ')
    : String(value);

/** Exit code 1 if the replay differs from the record. */
export const replayTask = async (
  context: CommandContext,
  id: string | undefined,
  at: number | undefined,
): Promise<number> => {
  const { connection, io, json } = context;
  if (id === undefined)
    throw usageError('word_missing', {
      command: 'replay',
      word: '<task_id>',
      usage: 'agent replay <task_id>',
    });
  const taskId = requireId(id);
  if (at !== undefined && !(Number.isSafeInteger(at) && at >= 0))
    throw new UsageError(
      '--at: expected a number of the journal, as agent logs --json shows it (seq)',
    );
  const client = await connection.files();
  const answer = await client.call('replay', {
    task_id: taskId,
    at_seq: at,
  });
  const {
    steps,
    context: contexts,
    difference,
    history_removed: removed,
  } = replayedSchema.parse(answer);
  const wrong = difference !== null || steps.some(({ same }) => !same);
  if (json) io.json(answer);
  else {
    for (const step of steps) {
      const who = step.machine === 'agent' ? `agent ${step.attempt}` : step.machine.padEnd(5);
      const note = step.same ? '' : '   DIFFERS from the record';
      io.out(
        `${String(step.seq).padStart(6)}  ${step.at}  ${who}  ${statePath(step.state)}  (${step.event})${note}`,
      );
    }
    if (removed !== undefined)
      io.out(`${taskId} cannot be replayed: its history was ${removedText(removed)}`);
    else if (steps.length === 0) io.out(`${taskId} has no recorded events`);
    if (at !== undefined) io.out(JSON.stringify(contexts, null, 2));
    if (difference !== null) io.err(`agent: ${difference}`);
  }
  return wrong ? exitCodes.failed : exitCodes.done;
};
