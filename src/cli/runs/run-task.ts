import { z } from 'zod';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { messageOf } from '../../machines/message-of.ts';
import { CallError, type Client, type Frame } from '../client/client.ts';
import { readTask } from '../client/task-answers.ts';
import { durationText } from '../output/durations.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { nextSteps, usedText } from '../output/next-steps.ts';
import { renderFrame } from '../output/render-frame.ts';
import { joined, styled, type Text } from '../output/styled.ts';
import { createAnswering } from './ask-person.ts';
import { createProgressLine } from './progress-line.ts';

const executionAnswerSchema = z.looseObject({
  task_id: z.string(),
  attempt: z.number(),
  message: z.string(),
  stream_url: z.string(),
});
const settled: Readonly<Record<string, number>> = {
  completed: exitCodes.done,
  failed: exitCodes.failed,
  cancelled: exitCodes.cancelled,
};

export interface RunRequest {
  readonly role: string;
  readonly task: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly json: boolean;
}

/** The first Ctrl-C cancels the task, the second exits at once. */
const onInterrupt = (
  cancel: () => Promise<unknown>,
  io: Io,
): { interrupted: () => boolean; stop: () => void } => {
  let asked = false;
  const handler = (): void => {
    if (asked) process.exit(exitCodes.interrupted);
    asked = true;
    io.err('cancelling; press Ctrl-C again to exit at once');
    cancel().catch((error: unknown) => io.err(messageOf(error)));
  };
  process.on('SIGINT', handler);
  return { interrupted: () => asked, stop: () => process.off('SIGINT', handler) };
};

const showFrame = (frame: Frame, json: boolean, io: Io): void => {
  if (json) {
    io.json(frame);
    return;
  }
  const line = frame.type === 'completed' ? null : renderFrame(frame);
  if (line !== null) io.out(line);
};

const summary = (task: TaskView, totalMs: number): Text => {
  const { task_id, status, started_at: from, completed_at: to, usage } = task;
  const ownMs = from === undefined || to === undefined ? null : Date.parse(to) - Date.parse(from);
  const took = ownMs === null ? '' : ` in ${durationText(ownMs)}`;
  const all = task.attempt > 1 ? ` (${durationText(totalMs)} with every attempt)` : '';
  const style = status === 'complete' ? 'green' : 'red';
  const lines: Text[] = [[`${task_id} `, styled(style, status), `${took}${all}${usedText(usage)}`]];
  if (task.result !== undefined) lines.push(task.result);
  if (task.results_path !== undefined) lines.push(`results: ${task.results_path}`);
  return joined([...lines, ...nextSteps(task)], '\n');
};

/** @throws CallError */
export const submit = async (client: Client, { role, task, options }: RunRequest) =>
  executionAnswerSchema.parse(await client.call('execute', { task, role, options }));

/**
 * Follows a run to its end. Subscribes before it submits, so that it misses nothing. @returns the
 * exit code: 0 only when the task completed @throws CallError
 */
export const followRun = async (client: Client, request: RunRequest, io: Io): Promise<number> => {
  const task_id = request.task;
  const abort = new AbortController();
  const frames = client.frames(task_id, null, abort.signal)[Symbol.asyncIterator]();
  await frames.next();
  const cancel = () => client.call('cancel', { task_id, reason: 'interrupted by the user' });
  const interrupt = onInterrupt(cancel, io);
  const beganAt = performance.now();
  const progress = request.json ? null : createProgressLine(io, task_id);
  const answering = request.json ? null : createAnswering(client, io);
  let code: number | null = null;
  try {
    const { attempt } = await submit(client, request);
    for (let next = await frames.next(); next.done !== true; next = await frames.next()) {
      const frame = next.value;
      showFrame(frame, request.json, io);
      answering?.see(frame);
      if (answering?.isOpen() === true) progress?.pause();
      else progress?.see(frame);
      if (frame.attempt >= attempt || frame.type === 'cancelled')
        code = settled[frame.type] ?? code;
      if (isLateRefusal(frame)) break;
    }
  } finally {
    interrupt.stop();
    abort.abort();
    answering?.stop();
    progress?.stop();
  }
  const task = await readTask(client, task_id);
  if (!request.json) io.out(summary(task, performance.now() - beganAt));
  if (interrupt.interrupted()) return exitCodes.interrupted;
  if (code !== null) return code;
  if (task.error !== undefined)
    throw new CallError(task.error.code, task.error.message, task.error.facts);
  return exitCodes.failed;
};

/** An accepted run can still be refused later, for example when somebody else took the task. */
const isLateRefusal = ({ type, data }: Frame): boolean =>
  type === 'status_update' &&
  data['status'] !== 'failed' &&
  data['phase'] !== 'waiting_for_tracker' &&
  data['error'] !== undefined &&
  data['error'] !== null;
