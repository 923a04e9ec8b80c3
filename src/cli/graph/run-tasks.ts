import { z } from 'zod';
import { plannedRunSchema } from '../../http/wire.ts';
import { plural } from '../../machines/plural.ts';
import type { TaskId } from '../../machines/task.ts';
import type { Client, Frame } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { readTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { costText } from '../output/money.ts';
import { renderTable } from '../output/render/table.ts';
import { oneLine } from '../output/safe-text.ts';
import { fetchTasks } from '../tasks/fetch-tasks.ts';
import { phaseWord } from '../words/state-words.ts';
import { type AnswerHere, answerHere } from './answer-here.ts';
import { createDisplay, type Display, firstAsking, renderOutcome, tasksOf } from './display.ts';
import { handleInterrupts } from './interrupts.ts';
import {
  exitCodeFor,
  type FollowedRun,
  outcomeOf,
  type StartedRun,
  skippedCycle,
  skippedTexts,
} from './outcome.ts';
import { changesState, createProgress, isOver, isOverBudget, type Progress } from './progress.ts';
import { readUnmerged, takeWorkLines } from './take-work.ts';

const startedSchema = z.object({
  accepted: z.array(z.object({ task_id: z.string(), role: z.string(), phase: z.string() })),
  skipped: z.array(
    z.object({ task_id: z.string(), reason: z.string(), code: z.string().optional() }),
  ),
});

const usageDaysSchema = z.object({
  days: z.array(
    z.object({ role: z.string(), attempts: z.number(), cost_usd: z.number().optional() }),
  ),
});
type PlannedTasks = z.infer<typeof plannedRunSchema>['tasks'];

export interface RunTasksRequest {
  /** None: every open task. */
  readonly taskIds: readonly TaskId[];
  readonly role?: string;
  readonly options: Readonly<Record<string, unknown>>;
  /** What chooses among them, and what they may cost together, as on the wire. */
  readonly chosen: Readonly<Record<string, unknown>>;
}

const paramsOf = ({ taskIds, role, options, chosen }: RunTasksRequest) => ({
  options,
  ...(taskIds.length === 0 ? {} : { task_ids: taskIds }),
  role,
  ...Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== undefined)),
});

const startRun = async (client: Client, request: RunTasksRequest) =>
  startedSchema.parse(await client.call('run', paramsOf(request)));

const planRun = async (client: Client, request: RunTasksRequest) =>
  plannedRunSchema.parse(await client.call('run', { ...paramsOf(request), dry_run: true }));

/** What an attempt of each role has cost on average; empty where no cost is known. */
const pastCosts = async (client: Client): Promise<ReadonlyMap<string, number>> => {
  const { days } = usageDaysSchema.parse(await client.call('usage', {}));
  const sums = new Map<string, { usd: number; attempts: number }>();
  for (const { role, attempts, cost_usd } of days) {
    if (cost_usd === undefined) continue;
    const { usd, attempts: before } = sums.get(role) ?? { usd: 0, attempts: 0 };
    sums.set(role, { usd: usd + cost_usd, attempts: before + attempts });
  }
  return new Map([...sums].map(([role, { usd, attempts }]) => [role, usd / attempts]));
};

/** `about 12.40 USD, by what attempts cost before`; empty where that is not known of every role. */
const expectedCost = (tasks: PlannedTasks, past: ReadonlyMap<string, number>): string => {
  const each = tasks.map(({ role }) => past.get(role));
  if (tasks.length === 0 || each.includes(undefined)) return '';
  const sum = each.reduce<number>((total, usd) => total + (usd ?? 0), 0);
  return `, about ${costText(sum)} by what attempts of these roles cost before`;
};

/** `agent run --dry-run` */
export const planTasks = async (
  context: CommandContext,
  request: RunTasksRequest,
): Promise<number> => {
  const { io, json, connection } = context;
  const client = await connection.server();
  const plan = await planRun(client, request);
  const code = skippedCycle(plan.skipped) ? exitCodes.conflict : exitCodes.done;
  if (json) {
    io.json(plan);
    return code;
  }
  const past = await pastCosts(client);
  const rows = plan.tasks.map(({ task_id, role, model, after }) => [
    { text: task_id },
    { text: role },
    { text: oneLine(model, 40) },
    { text: costText(past.get(role)) ?? '-' },
    { text: after.length === 0 ? '-' : after.join(', ') },
  ]);
  if (rows.length > 0)
    io.out(renderTable(['ID', 'ROLE', 'MODEL', 'COST BEFORE', 'AFTER'], rows, io.width));
  printSkipped(context, plan);
  io.out(
    `${plural(plan.tasks.length, 'task')} would run${expectedCost(plan.tasks, past)}; nothing was started`,
  );
  return code;
};

const unnamedAtMost = 10;

/** Asks a person before many tasks start that the command did not name. @returns whether to go on */
export const mayStart = async (
  { io, json, connection }: CommandContext,
  request: RunTasksRequest,
): Promise<boolean> => {
  const { ask } = io;
  if (json || ask === null || io.width === null) return true;
  const client = await connection.server();
  const { tasks } = await planRun(client, request);
  const named = new Set<string>(request.taskIds);
  const unnamed = tasks.filter(({ task_id }) => !named.has(task_id)).length;
  if (unnamed <= unnamedAtMost) return true;
  const cost = expectedCost(tasks, await pastCosts(client));
  const said = await ask(
    `This starts ${plural(tasks.length, 'task')}${cost} (agent run --dry-run lists them). Go on? [y/N] `,
  );
  if (/^y/i.test(said ?? '')) return true;
  io.err('nothing was started; choose with --label, --priority, --limit, or skip this with --yes');
  return false;
};

const printSkipped = ({ io }: CommandContext, { skipped }: Pick<StartedRun, 'skipped'>): void => {
  for (const { who, why } of skippedTexts(skipped)) io.err(`skipped ${who}: ${why}`);
};

/** @returns the exit code when there is nothing to follow, else null */
const nothingStarted = (context: CommandContext, run: FollowedRun): number | null => {
  if (run.accepted.length + run.attached.length > 0) return null;
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
  const run = await startRun(await connection.server(), request);
  if (json) io.json(run);
  const code = nothingStarted(context, { ...run, attached: [] });
  if (code !== null) return code;
  const ended = skippedCycle(run.skipped)
    ? exitCodes.conflict
    : run.skipped.some(({ code }) => code !== 'already_running' && code !== 'complete')
      ? exitCodes.failed
      : exitCodes.done;
  if (json) return ended;
  printSkipped(context, run);
  for (const { task_id, role, phase } of run.accepted)
    io.out(`${task_id} ${role} ${phaseWord(phase)}`);
  return ended;
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

/** True when no task of the run will change by itself. */
const areDone = (progress: Progress, ids: readonly string[]): boolean =>
  ids.every((id) => {
    const task = progress.get(id);
    if (task === null) return false;
    return isOver(task) || isOverBudget(task.view) || progress.blocker(id) !== null;
  });

const leftCode = ({ io }: CommandContext): number => {
  io.out('the tasks go on in the background; see: agent list, agent explain <id>');
  return exitCodes.interrupted;
};

const lookMs = 100;
/** A policy may still fail what waits for a task that failed. */
const unchangedMs = 1_000;

/** Calls `done` when nothing of a run changes by itself any more; looks at most ten times a second. */
const watchForEnd = (progress: Progress, ids: readonly string[], done: () => void) => {
  let later: NodeJS.Timeout | null = null;
  let doneSince: number | null = null;
  const lookIn = (ms: number): void => {
    later ??= setTimeout(look, ms);
  };
  const look = (): void => {
    later = null;
    doneSince = areDone(progress, ids) ? (doneSince ?? performance.now()) : null;
    if (doneSince === null) return;
    const waits = ids.some((id) => progress.blocker(id) !== null);
    if (!waits || performance.now() - doneSince >= unchangedMs) done();
    else lookIn(lookMs);
  };
  return {
    changed: () => lookIn(lookMs),
    stop: () => {
      if (later !== null) clearTimeout(later);
    },
  };
};

const refreshMs = 5_000;

/** Asks for stale tasks at intervals. @returns stops it */
const refreshStale = (
  client: Client,
  progress: Progress,
  ids: readonly string[],
  changed: () => void,
): (() => void) => {
  const refresh = async (): Promise<void> => {
    for (const id of ids.filter(progress.isStale)) progress.refresh(await readTask(client, id));
    changed();
  };
  // The stream tells when the server is gone.
  const refreshNow = (): void => void refresh().catch(() => {});
  const first = setTimeout(refreshNow, lookMs);
  const timer = setInterval(refreshNow, refreshMs);
  return () => {
    clearTimeout(first);
    clearInterval(timer);
  };
};

interface FollowedTasks {
  readonly client: Client;
  readonly progress: Progress;
  readonly display: Display;
  /** Null where no person is there. */
  readonly answering: AnswerHere | null;
  readonly run: FollowedRun;
  readonly rest: AsyncIterator<Frame>;
  readonly abort: AbortController;
}

/** Reads frames until the run is done. */
const follow = async ({
  client,
  progress,
  display,
  answering,
  run,
  rest,
  abort,
}: FollowedTasks): Promise<void> => {
  const ids = followedIn(run);
  const own = new Set([...ids, ...run.skipped.map(({ task_id }) => task_id)]);
  const end = watchForEnd(progress, ids, () => abort.abort());
  const stopRefreshing = refreshStale(client, progress, ids, end.changed);
  try {
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      const frame = next.value;
      progress.take(frame);
      if (own.has(frame.task_id)) display.see(frame);
      answering?.look();
      if (changesState(frame)) end.changed();
      if (abort.signal.aborted) return;
    }
  } finally {
    stopRefreshing();
    end.stop();
  }
};

/** Listens first, so that it misses nothing. */
const startAndListen = async (
  client: Client,
  io: Io,
  request: RunTasksRequest,
  abort: AbortController,
) => {
  const frames = client.frames(null, null, abort.signal)[Symbol.asyncIterator]();
  await frames.next();
  return { run: await attach(client, io, await startRun(client, request)), rest: frames };
};

const idsIn = ({ accepted }: StartedRun): readonly string[] =>
  accepted.map(({ task_id }) => task_id);
const followedIn = ({ accepted, attached }: FollowedRun): readonly string[] =>
  [...accepted, ...attached].map(({ task_id }) => task_id);

/** Prints how a run that was followed ended, and what to do next. @returns the exit code */
const report = async (
  { io, json }: CommandContext,
  {
    client,
    run,
    progress,
    request,
  }: Pick<FollowedTasks, 'client' | 'run' | 'progress'> & { readonly request: RunTasksRequest },
  beganAt: number,
): Promise<number> => {
  const outcome = outcomeOf(run, progress, (performance.now() - beganAt) / 1_000);
  if (json) io.json({ type: 'run_ended', ...outcome });
  else {
    io.out(renderOutcome(outcome, io.width));
    const unmerged = await readUnmerged(client, outcome.complete);
    const isPublished = request.options['publish'] === true ? () => true : undefined;
    for (const line of takeWorkLines(unmerged, isPublished)) io.out(line);
  }
  return exitCodeFor(outcome);
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
  const progress = createProgress();
  let ids: readonly string[] = [];
  let onlyFollows = false;
  const asks = !json && io.terminal() !== null && process.stdin.isTTY === true;
  const shown = { progress, followed: () => ids };
  const display = createDisplay({ io, json, answersHere: asks, ...shown });
  const starting = startAndListen(client, io, request, abort);
  const interrupts = handleInterrupts({
    io,
    asks,
    onlyFollows: () => onlyFollows,
    // Also when it comes before the answer.
    cancel: async () => {
      const { run } = await starting;
      await cancelAll(client, progress, idsIn(run));
      // What others started goes on.
      if (run.attached.length > 0) abort.abort();
    },
    show: display.ask,
    leave: () => abort.abort(),
  });
  const answering = asks
    ? answerHere({
        client,
        io,
        asking: () => firstAsking(tasksOf(shown)),
        typing: display.typing,
        isInterrupted: interrupts.wasInterrupted,
      })
    : null;
  try {
    const { run, rest } = await starting;
    if (json)
      io.json({
        type: 'run_started',
        ...run,
        attached: run.attached.map(({ task_id }) => task_id),
      });
    const code = nothingStarted(context, run);
    if (code !== null) return code;
    printSkipped(context, run);
    for (const view of run.attached) {
      const how = view.status === 'started' ? `runs (attempt ${view.attempt})` : 'waits to run';
      io.err(`${view.task_id} already ${how}; following it`);
      progress.begin(view);
    }
    ids = followedIn(run);
    onlyFollows = run.accepted.length === 0;
    await follow({ client, progress, display, answering, run, rest, abort });
    display.stop();
    const ended = interrupts.wasLeft()
      ? leftCode(context)
      : await report(context, { client, run, progress, request }, beganAt);
    return interrupts.wasInterrupted() ? exitCodes.interrupted : ended;
  } finally {
    abort.abort();
    answering?.stop();
    interrupts.stop();
    display.stop();
  }
};

/** A task that an earlier run asked for is followed, too: it is not started twice. */
const attach = async (client: Client, io: Io, run: StartedRun): Promise<FollowedRun> => {
  const running = new Set(
    run.skipped.filter(({ code }) => code === 'already_running').map(({ task_id }) => task_id),
  );
  if (running.size === 0) return { ...run, attached: [] };
  const { tasks } = await fetchTasks(client, io, { status: 'active' }, null);
  const attached = tasks.filter(({ task_id }) => running.has(task_id));
  const ids = new Set(attached.map(({ task_id }) => task_id));
  return { ...run, attached, skipped: run.skipped.filter(({ task_id }) => !ids.has(task_id)) };
};
