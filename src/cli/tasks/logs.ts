import { z } from 'zod';
import { requireId } from '../../actors/engine/queries/task-id.ts';
import { taskViewSchema } from '../../actors/journal/task-view.ts';
import { CallError, type Client, type Frame } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import {
  frameText,
  outputIndent,
  questionText,
  renderFrame,
} from '../output/render/render-frame.ts';
import { removedText } from '../output/render/render-task.ts';
import { joined, styled, type Text, terminalText } from '../output/styled.ts';
import { dateText, timeOfDayText } from '../output/times.ts';
import { indentBelow, linesOfText, wrapStyledLine } from '../output/wrap.ts';
import { UsageError } from '../words/usage-error.ts';

/** Null for a frame that says nothing, or the same state as the one before. */
export type LogLines = (frame: Frame) => Text | null;

const asWritten =
  (isFull: boolean): LogLines =>
  (frame) => {
    const line = renderFrame(frame, isFull);
    return line === null ? null : joined([`${frame.timestamp} `, line], '');
  };

const timeColumn = 'hh:mm:ss '.length;

/** Lines of output stay as they are, to be copied; the others begin after `column`. */
const textBelow = (column: number, text: Text, width: number): Text =>
  joined(
    linesOfText(text).map((line, at) => {
      const isOutput = at > 0 && terminalText(line, false).startsWith(outputIndent);
      if (isOutput) return line;
      const [first, ...more] = linesOfText(wrapStyledLine(line, width - column));
      const others = more.map((each) => {
        const shown = terminalText(each, false);
        return joined([indentBelow(' '.repeat(column), shown, width - column), each], '');
      });
      const start = at === 0 ? '' : ' '.repeat(column);
      return joined([joined([start, first ?? ''], ''), ...others], '\n');
    }),
    '\n',
  );

/**
 * `renderFrame`, in lines that fit a terminal. `width`: null for a pipe. `asksHere`: the question is
 * answered in this terminal.
 */
export const runLine = (frame: Frame, width: number | null, asksHere = false): Text | null => {
  const question = asksHere ? questionText(frame) : null;
  const [line, text] = [renderFrame(frame), question ?? frameText(frame)];
  if (line === null || text === null || width === null) return line;
  if (terminalText(text, false).startsWith(outputIndent)) return line;
  const start = `${frame.task_id} `;
  return joined([start, textBelow(start.length, text, width)], '');
};

/** Local times without the id, and a line for each date that is not today. */
const forTerminal = (isFull: boolean, width: number, today: string): LogLines => {
  let date = today;
  return (frame) => {
    const text = frameText(frame, isFull);
    if (text === null) return null;
    const own = dateText(frame.timestamp);
    const newDate: readonly Text[] = own === date ? [] : [[styled('dim', own)]];
    date = own;
    if (terminalText(text, false).startsWith(outputIndent)) return joined([...newDate, text], '\n');
    const time = styled('dim', timeOfDayText(frame.timestamp));
    const line = joined([[time, ' '], textBelow(timeColumn, text, width)], '');
    return joined([...newDate, line], '\n');
  };
};

/** `width`: columns of the terminal; null for a pipe, whose lines have UTC times and the id. */
export const createLogLines = (isFull: boolean, width: number | null, now: number): LogLines => {
  const render =
    width === null
      ? asWritten(isFull)
      : forTerminal(isFull, width, dateText(new Date(now).toISOString()));
  let state = '';
  return (frame) => {
    const text = frame.type === 'status_update' ? renderFrame(frame) : null;
    const shown = text === null ? '' : `${frame.attempt} ${terminalText(text, false)}`;
    if (shown !== '' && shown === state) return null;
    const line = render(frame);
    if (line !== null) state = shown;
    return line;
  };
};

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
