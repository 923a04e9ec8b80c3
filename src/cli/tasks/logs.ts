import { z } from 'zod';
import { requireId } from '../../actors/engine/task-id.ts';
import { taskViewSchema } from '../../actors/journal/task-view.ts';
import { CallError, type Client, type Frame } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { removedText } from '../output/render-task.ts';
import { UsageError } from '../words/usage-error.ts';
import { createLogLines } from './log-lines.ts';

const frameSchema = z.looseObject({
  type: z.string(),
  task_id: z.string(),
  attempt: z.number(),
  seq: z.number().nullable(),
  timestamp: z.string(),
  data: z.record(z.string(), z.unknown()),
});
const historyAnswerSchema = z.looseObject({
  entries: z.array(frameSchema),
  next_after: z.number().optional(),
  history_removed: taskViewSchema.shape.history_removed,
});

/** `onRemoved` is told why the history does not begin with the task. */
export async function* history(
  client: Client,
  taskId: string,
  onRemoved: (why: string) => void = () => {},
): AsyncGenerator<Frame> {
  for (let after = 0; ; ) {
    const page = historyAnswerSchema.parse(
      await client.call('history', { task_id: taskId, after_seq: after }),
    );
    if (page.history_removed !== undefined) onRemoved(removedText(page.history_removed));
    yield* page.entries;
    if (page.next_after === undefined) return;
    after = page.next_after;
  }
}

export interface LogsArgs {
  readonly follow: boolean;
  readonly full: boolean;
  readonly attempt: number | undefined;
}

export const showLogs = async (
  { connection, io, json }: CommandContext,
  id: string,
  { follow, full, attempt }: LogsArgs,
): Promise<number> => {
  const taskId = requireId(id);
  if (attempt !== undefined && !(Number.isSafeInteger(attempt) && attempt > 0))
    throw new UsageError(`--attempt needs a whole number from 1; ${attempt} is none`);
  const abort = new AbortController();
  const frames = follow
    ? (await connection.server()).frames(taskId, 0, abort.signal)
    : history(await connection.files(), taskId, (why) =>
        io.err(`note: the history of ${taskId} was ${why}`),
      );
  const lines = createLogLines(full, io.width, Date.now());
  let isEmpty = true;
  for await (const frame of frames) {
    if (attempt !== undefined && frame.attempt !== attempt) continue;
    isEmpty = false;
    const line = json ? null : lines(frame);
    if (json) io.json(frame);
    else if (line !== null) io.out(line);
    await io.room();
  }
  if (isEmpty && attempt !== undefined)
    throw new CallError('nothing_to_show', `${taskId} has no attempt ${attempt}`, {
      task_id: taskId,
    });
  return exitCodes.done;
};
