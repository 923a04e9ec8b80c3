import { z } from 'zod';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { workedMs } from '../../http/worked-time.ts';
import { textIn } from '../../machines/json.ts';
import { budgetInReason } from '../../machines/phase.ts';
import { CallError, type Client, type Frame } from '../client/client.ts';
import { readTask } from '../client/task-answers.ts';
import { handleInterrupts } from '../graph/interrupts.ts';
import { isOverBudget } from '../graph/progress.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { nextSteps, usedText } from '../output/next-steps.ts';
import { callText, parkedLine, turnText } from '../output/render/render-frame.ts';
import { joined, styled, type Text } from '../output/styled.ts';
import { durationText } from '../output/times.ts';
import { runLine } from '../tasks/logs.ts';
import { phaseWord } from '../words/state-words.ts';
import { createAnswering } from './ask-person.ts';

const spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'] as const;
const progressTickMs = 120;

/** The live line of a run on a terminal: spinner, turn, current activity and its duration. */
interface ProgressLine {
  see(frame: Frame): void;
  /** Clears the line while something else is on the terminal. */
  pause(): void;
  stop(): void;
}

interface ShownProgress {
  readonly attempt: number;
  readonly turn: string | null;
  readonly doing: string;
}

const changeInTask = (frame: Frame): Partial<ShownProgress> => {
  const { attempt, type, data } = frame;
  if (type === 'api_call_start') return { attempt, turn: turnText(frame), doing: 'thinking' };
  if (type === 'tool_start') return { attempt, doing: callText(frame) };
  if (type === 'tool_end') return { attempt, doing: 'thinking' };
  if (type === 'log' && typeof data['command'] === 'string' && data['exit_code'] === undefined)
    return { attempt, doing: `verify ${data['command']}` };
  const phase = type === 'status_update' ? data['phase'] : undefined;
  const parked = type === 'status_update' ? parkedLine(data) : null;
  if (parked !== null) return { attempt, doing: parked };
  if (typeof phase !== 'string' || phase === 'acting') return {};
  return { attempt, doing: phaseWord(phase) };
};

const createProgressLine = (io: Io, taskId: string): ProgressLine => {
  const beganAt = performance.now();
  let shown: ShownProgress = { attempt: 0, turn: null, doing: 'starting' };
  let tick = 0;
  let isPaused = false;
  const draw = (): void => {
    if (isPaused) return;
    const { attempt, turn, doing } = shown;
    const parts = [
      ...(attempt > 1 ? [`attempt ${attempt}`] : []),
      ...(turn === null ? [] : [turn]),
      durationText(performance.now() - beganAt),
      doing,
    ];
    io.live(`${spinner[tick % spinner.length]} ${taskId}  ${parts.join('  ')}`);
    tick += 1;
  };
  const timer = io.width === null ? undefined : setInterval(draw, progressTickMs);
  return {
    see: (frame) => {
      isPaused = false;
      shown = { ...shown, ...changeInTask(frame) };
      draw();
    },
    pause: () => {
      isPaused = true;
      io.live('');
    },
    stop: () => {
      clearInterval(timer);
      io.live('');
    },
  };
};

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

const showFrame = (frame: Frame, json: boolean, io: Io): void => {
  if (json) {
    io.json(frame);
    return;
  }
  const line = frame.type === 'completed' ? null : runLine(frame, io.width, io.ask !== null);
  if (line !== null) io.out(line);
};

/** `totalMs`: of all attempts, when several followed each other. */
const summary = (task: TaskView, totalMs: number | null): Text => {
  const { task_id, status, completed_at: to, usage } = task;
  const ownMs = to === undefined ? null : workedMs(task, Date.now());
  const took = ownMs === null ? '' : ` in ${durationText(ownMs)}`;
  const all = totalMs === null ? '' : ` (${durationText(totalMs)} with every attempt)`;
  const style = status === 'complete' ? 'green' : 'red';
  const lines: Text[] = [[`${task_id} `, styled(style, status), `${took}${all}${usedText(usage)}`]];
  if (task.result !== undefined) lines.push(task.result);
  if (task.results_path !== undefined) lines.push(`results: ${task.results_path}`);
  return joined([...lines, ...nextSteps(task)], '\n');
};

/** @throws CallError */
export const submit = async (client: Client, { role, task, options }: RunRequest) =>
  executionAnswerSchema.parse(await client.call('execute', { task, role, options }));

interface FollowedAttempt {
  readonly taskId: string;
  readonly json: boolean;
  readonly frames: AsyncIterator<Frame>;
  readonly abort: AbortController;
  /** @returns the attempt whose end is awaited; null: nothing begins soon, and nobody waits */
  readonly start: () => Promise<number | null>;
}

const followAttempt = async (
  client: Client,
  { taskId: task_id, json, frames, abort, start }: FollowedAttempt,
  io: Io,
): Promise<number> => {
  const beganAt = performance.now();
  const progress = json ? null : createProgressLine(io, task_id);
  const answering = json ? null : createAnswering(client, io);
  const interrupt = handleInterrupts({
    io,
    asks: !json && io.terminal() !== null && process.stdin.isTTY === true,
    onlyFollows: () => false,
    cancel: async () =>
      void (await client.call('cancel', { task_id, reason: 'interrupted by the user' })),
    show: (question) => {
      // From now on Enter answers this question.
      answering?.stop();
      progress?.pause();
      if (question !== null) io.err(question);
    },
    leave: () => abort.abort(),
  });
  const begun = new Set<number>();
  let code: number | null = null;
  try {
    const attempt = await start();
    if (attempt === null) return exitCodes.done;
    for (let next = await frames.next(); next.done !== true; next = await frames.next()) {
      const frame = next.value;
      showFrame(frame, json, io);
      answering?.see(frame);
      if (frame.data['status'] === 'started') begun.add(frame.attempt);
      if (answering?.isOpen() === true) progress?.pause();
      else progress?.see(frame);
      if (frame.attempt >= attempt || frame.type === 'cancelled')
        code = settled[frame.type] ?? code;
      if (isLateRefusal(frame) || isAtBudget(frame)) break;
    }
  } finally {
    interrupt.stop();
    abort.abort();
    answering?.stop();
    progress?.stop();
  }
  if (interrupt.wasLeft()) {
    io.out(`it goes on in the background; watch it with: agent logs -f ${task_id}`);
    return exitCodes.interrupted;
  }
  const task = await readTask(client, task_id);
  const totalMs = begun.size > 1 ? performance.now() - beganAt : null;
  if (!json) io.out(summary(task, totalMs));
  if (interrupt.wasInterrupted()) return exitCodes.interrupted;
  if (code !== null) return code;
  // It goes on when there is more money; nobody waits here for that.
  if (isOverBudget(task)) return exitCodes.unavailable;
  if (task.error !== undefined)
    throw new CallError(task.error.code, task.error.message, task.error.facts);
  return exitCodes.failed;
};

/**
 * Follows a run to its end. Subscribes before it submits, so that it misses nothing. @returns the
 * exit code: 0 only when the task completed @throws CallError
 */
export const runAndFollow = async (
  client: Client,
  request: RunRequest,
  io: Io,
): Promise<number> => {
  const abort = new AbortController();
  const frames = client.frames(request.task, null, abort.signal)[Symbol.asyncIterator]();
  await frames.next();
  const start = async () => (await submit(client, request)).attempt;
  return followAttempt(
    client,
    { taskId: request.task, json: request.json, frames, abort, start },
    io,
  );
};

/** The frames of one task in the stream of all, up to the end of an attempt. */
async function* framesUntilEnd(all: AsyncIterator<Frame>, taskId: string): AsyncGenerator<Frame> {
  for (let next = await all.next(); next.done !== true; next = await all.next()) {
    if (next.value.task_id !== taskId) continue;
    yield next.value;
    if (next.value.type in settled) return;
  }
}

/**
 * Runs a task again and follows it. Reads the stream of all tasks: that of a task that is over tells
 * its earlier attempts. @returns as `followRun` @throws CallError
 */
export const followRetry = async (
  client: Client,
  taskId: string,
  start: FollowedAttempt['start'],
  io: Io,
): Promise<number> => {
  const abort = new AbortController();
  const all = client.frames(null, null, abort.signal)[Symbol.asyncIterator]();
  await all.next();
  const frames = framesUntilEnd(all, taskId);
  return followAttempt(client, { taskId, json: false, frames, abort, start }, io);
};

/** Follows an attempt that somebody began. @returns as `followRun` @throws CallError */
export const followBegun = async (
  client: Client,
  { taskId, attempt, json }: Pick<FollowedAttempt, 'taskId' | 'json'> & { attempt: number },
  io: Io,
): Promise<number> => {
  const abort = new AbortController();
  const all = client.frames(taskId, null, abort.signal);
  const ofAttempt = async function* (): AsyncGenerator<Frame> {
    for await (const frame of all) if (frame.attempt >= attempt) yield frame;
  };
  const frames = framesUntilEnd(ofAttempt(), taskId);
  return followAttempt(client, { taskId, json, frames, abort, start: async () => attempt }, io);
};

/** It waits for more money, or for another day. */
const isAtBudget = ({ type, data }: Frame): boolean =>
  type === 'status_update' && budgetInReason(textIn(data, 'parked_reason') ?? undefined) !== null;

/** An accepted run can still be refused later, for example when somebody else took the task. */
const isLateRefusal = ({ type, data }: Frame): boolean =>
  type === 'status_update' &&
  data['status'] !== 'failed' &&
  data['phase'] !== 'waiting_for_tracker' &&
  data['error'] !== undefined &&
  data['error'] !== null;
