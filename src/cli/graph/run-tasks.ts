import { z } from 'zod';
import type { TaskId } from '../../machines/task.ts';
import type { Client, Frame } from '../client/client.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { oneLine } from '../output/safe-text.ts';
import type { CommandContext } from '../tasks/commands.ts';
import { createDisplay, type Display } from './display.ts';
import { handleInterrupts } from './interrupts.ts';
import { exitCodeFor, outcomeOf, type StartedRun } from './outcome.ts';
import { changesState, createProgress, isOver, type Progress } from './progress.ts';
import { renderOutcome } from './render-progress.ts';

const startedSchema = z.object({
  accepted: z.array(z.object({ task_id: z.string(), role: z.string(), phase: z.string() })),
  skipped: z.array(z.object({ task_id: z.string(), reason: z.string() })),
});

export interface RunTasksRequest {
  /** None: every open task. */
  readonly taskIds: readonly TaskId[];
  readonly role?: string | undefined;
  readonly options: Readonly<Record<string, unknown>>;
}

const start = async (client: Client, { taskIds, role, options }: RunTasksRequest) =>
  startedSchema.parse(
    await client.call('run', {
      options,
      ...(taskIds.length === 0 ? {} : { task_ids: taskIds }),
      ...(role === undefined ? {} : { role }),
    }),
  );

const printSkipped = ({ io }: CommandContext, { skipped }: StartedRun): void => {
  for (const { task_id, reason } of skipped) io.err(`skipped ${task_id}: ${oneLine(reason, 300)}`);
};

/** @returns the exit code when there is nothing to follow, else null */
const nothingStarted = (context: CommandContext, run: StartedRun): number | null => {
  if (run.accepted.length > 0) return null;
  printSkipped(context, run);
  if (run.skipped.length === 0) {
    if (!context.json) context.io.out('every task is complete; there is nothing to run');
    return exitCodes.done;
  }
  if (!context.json) context.io.err('agent: no task could be started');
  return exitCodes.conflict;
};

/** `agent run --async` */
export const startTasks = async (
  context: CommandContext,
  request: RunTasksRequest,
): Promise<number> => {
  const { io, json, connection } = context;
  const run = await start(await connection.server(), request);
  if (json) io.json(run);
  const code = nothingStarted(context, run);
  if (code !== null) return code;
  if (json) return exitCodes.done;
  printSkipped(context, run);
  for (const { task_id, role, phase } of run.accepted)
    io.out(`${task_id} ${role} ${phase.replaceAll('_', ' ')}`);
  return exitCodes.done;
};

const cancelledAtOnce = 16;

/** Those that wait first, so that none starts meanwhile. */
const cancelAll = async (client: Client, progress: Progress, ids: readonly string[]) => {
  const open = ids.toReversed().filter((id) => {
    const task = progress.get(id);
    return task === null || !isOver(task);
  });
  for (let n = 0; n < open.length; n += cancelledAtOnce)
    await Promise.allSettled(
      open
        .slice(n, n + cancelledAtOnce)
        .map((task_id) => client.call('cancel', { task_id, reason: 'interrupted by the user' })),
    );
};

const graceMs = 1_000;

/** True when no task of the run will change by itself. */
const isDone = (progress: Progress, ids: readonly string[]): boolean =>
  ids.every((id) => {
    const task = progress.get(id);
    return task !== null && (isOver(task) || progress.blocker(id) !== null);
  });

interface Followed {
  readonly progress: Progress;
  readonly display: Display;
  readonly run: StartedRun;
  readonly rest: AsyncIterator<Frame>;
  readonly abort: AbortController;
}

/** Reads frames until the run is done, and for a moment more: a policy may fail what waits. */
const follow = async ({ progress, display, run, rest, abort }: Followed): Promise<void> => {
  const ids = run.accepted.map(({ task_id }) => task_id);
  const own = new Set([...ids, ...run.skipped.map(({ task_id }) => task_id)]);
  let grace: NodeJS.Timeout | null = null;
  const take = (frame: Frame): void => {
    progress.take(frame);
    if (own.has(frame.task_id)) display.see(frame);
    if (!changesState(frame)) return;
    const done = isDone(progress, ids);
    const isAllOver = done && ids.every((id) => progress.blocker(id) === null);
    if (isAllOver) abort.abort();
    else if (!done && grace !== null) {
      clearTimeout(grace);
      grace = null;
    } else if (done) grace ??= setTimeout(() => abort.abort(), graceMs);
  };
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
    take(next.value);
    if (abort.signal.aborted) break;
  }
  if (grace !== null) clearTimeout(grace);
};

/** Listens first, so that it misses nothing. */
const startAndListen = async (client: Client, request: RunTasksRequest, abort: AbortController) => {
  const frames = client.frames(null, null, abort.signal)[Symbol.asyncIterator]();
  await frames.next();
  return { run: await start(client, request), rest: frames };
};

/**
 * `agent run`: starts tasks and follows them to their end. @returns 0 when all are complete, 1 when
 * one failed or could not be run, 4 when none could be started, 5 when one was cancelled, 130 after
 * Ctrl-C
 */
export const runTasks = async (
  context: CommandContext,
  request: RunTasksRequest,
): Promise<number> => {
  const { io, json, connection } = context;
  const client = await connection.server();
  const abort = new AbortController();
  const beganAt = performance.now();
  const { run, rest } = await startAndListen(client, request, abort);
  if (json) io.json({ type: 'run_started', ...run });
  const code = nothingStarted(context, run);
  if (code !== null) {
    abort.abort();
    return code;
  }
  printSkipped(context, run);
  const ids = run.accepted.map(({ task_id }) => task_id);
  const progress = createProgress();
  const display = createDisplay({ io, json, progress, followed: () => ids });
  const interrupts = handleInterrupts({
    io,
    asks: !json && io.terminal() !== null && process.stdin.isTTY === true,
    cancel: () => cancelAll(client, progress, ids),
    show: display.ask,
  });
  let isLeft = false;
  void interrupts.left.then(() => {
    isLeft = true;
    abort.abort();
  });
  try {
    await follow({ progress, display, run, rest, abort });
  } finally {
    abort.abort();
    interrupts.stop();
    display.stop();
  }
  if (isLeft) {
    io.out('the tasks go on in the background; see: agent list, agent explain <id>');
    return exitCodes.interrupted;
  }
  const outcome = outcomeOf(run, progress, (performance.now() - beganAt) / 1_000);
  if (json) io.json({ type: 'run_ended', ...outcome });
  else io.out(renderOutcome(outcome));
  return interrupts.wasInterrupted() ? exitCodes.interrupted : exitCodeFor(outcome);
};
