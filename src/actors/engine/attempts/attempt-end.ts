import { ServiceError } from '../../../machines/errors.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { reviewedWork } from '../../../machines/review.ts';
import type { TaskContext } from '../../../machines/task/task-context.ts';
import { type EndLabel, willRetry } from '../../../machines/task/task-selectors.ts';
import type { AttemptInput, AttemptOutcome, TaskId } from '../../../machines/task.ts';
import { readToolCallLog } from '../../journal/replay/replay.ts';
import { conflictsOf } from '../../journal/snapshots.ts';
import { type AttemptEnd, describeEnd, describeWork } from '../../results/results.ts';
import { StoreError } from '../../store/port.ts';
import type { Fence } from '../../tracker/port.ts';
import type { SavedWork } from '../../workspace/port.ts';
import type { TaskActorPorts } from './system-ports.ts';

const commentAtMost = 2_000;

const trackerComment = ({ taskId, attempt, role, outcome, end }: Report): string => {
  const isDone = end.status === 'complete';
  const summary = isDone && outcome?.status === 'done' ? `\n\n${outcome.summary}` : '';
  const text = `Attempt ${attempt} (${role}) ${isDone ? 'is done' : describeEnd(end)}${summary}`;
  const results = `\n\nResults: .beads/tasks/task-${taskId}/30-results.md`;
  return `${text.length > commentAtMost ? `${text.slice(0, commentAtMost)}…` : text}${results}`;
};

const diskProblem = /No space left on device|Read-only file system|Disk quota exceeded/;

const isDiskProblem = (error: Error): boolean =>
  error instanceof StoreError || 'errno' in error || diskProblem.test(error.message);

/**
 * A full or read-only disk, or a store that is away, is no fault of the attempt: the chart retries,
 * as in an outage of the tracker.
 */
export const asDiskProblem = (error: unknown): never => {
  if (!(error instanceof Error && isDiskProblem(error))) throw error;
  const detail = `the results cannot be written: ${error.message}`;
  throw new ServiceError(
    'tracker_unavailable',
    { detail, remedy: 'make room, or make .beads writable' },
    { cause: error },
  );
};

type EndedTask = Pick<TaskContext, 'failure' | 'reason'>;

/** Null when the attempt needs no report. */
const reportedEnd = ({ failure, reason }: EndedTask, label: EndLabel): AttemptEnd | null => {
  if (label === 'agent-cancelled') return { status: 'cancelled', reason };
  return failure === null ? null : { status: 'failed', failure };
};

type Report = AttemptInput & {
  readonly outcome: AttemptOutcome | null;
  readonly end: AttemptEnd;
};

export interface AttemptEnds {
  /** @throws when the results cannot be written */
  writeReport(report: Report, signal: AbortSignal): Promise<SavedWork | null>;
  keepWork(taskId: TaskId, attempt: number): Promise<void>;
  /** Writes results where possible: a failure here does not keep the task from its end. */
  reportEnd(taskId: TaskId, attempt: number, label: EndLabel, signal: AbortSignal): Promise<void>;
  /**
   * Commits gathered progress, so that later entries follow it. @throws tracker_unavailable, to try
   * again
   */
  commitProgress(): Promise<void>;
  /** Logs in the journal what was saved and what was left out. */
  logSavedWork(
    attempt: Pick<AttemptInput, 'taskId' | 'attempt'>,
    work: SavedWork | null,
  ): Promise<void>;
  /** Throws when the state was left, or when a later attempt exists. @throws stale_attempt */
  fenceOf(attempt: Pick<AttemptInput, 'taskId' | 'attempt'>, signal: AbortSignal): Fence;
}

const createFence =
  ({ host: { views } }: TaskActorPorts): AttemptEnds['fenceOf'] =>
  ({ taskId, attempt }, signal) =>
  () => {
    signal.throwIfAborted();
    const live_attempt = views.contextOf(taskId)?.attempt ?? attempt;
    if (live_attempt > attempt)
      throw new ServiceError('stale_attempt', { task_id: taskId, attempt, live_attempt });
  };

/** An attempt that follows reads what is kept. */
const unreadAtEnd = (context: TaskContext | null): readonly string[] =>
  context === null || willRetry(context) ? [] : (context.kept?.texts ?? []);

const createReports = (
  ports: TaskActorPorts,
  { fenceOf, commitProgress }: Pick<AttemptEnds, 'fenceOf' | 'commitProgress'>,
): AttemptEnds['writeReport'] => {
  const { tracker, store, results, host, choices } = ports;
  const { views } = host;
  return async (report, signal) => {
    const { taskId, attempt, role, options, outcome, end } = report;
    // The tracker may lack the task for a while: its file may come from another git branch.
    const task = (await host.refresh(taskId).catch(() => null)) ?? views.knownTask(taskId);
    if (task === null) throw new Error(`task ${taskId} is gone from the tracker`);
    signal.throwIfAborted();
    await commitProgress();
    const work = await ports.workspace.save(
      { taskId, attempt, role, options },
      task.title,
      end.status === 'complete',
    );
    signal.throwIfAborted();
    const model = choices.modelOf(options, role);
    await results.write({
      task,
      attempt,
      role,
      model: model.name,
      disclaimer: model.disclaimer,
      startedAt: views.contextOf(taskId)?.startedAt ?? ports.now(),
      endedAt: ports.now(),
      outcome,
      comments: report.review?.comments ?? [],
      unread: unreadAtEnd(views.contextOf(taskId)),
      end,
      workLog: await readToolCallLog(store, taskId, attempt),
      work,
      notSaved: work === null ? await ports.workspace.leftOut(taskId, attempt) : [],
      conflicts: await conflictsOf(store, taskId, attempt),
    });
    if (choices.notes())
      await tracker.note(taskId, trackerComment(report), fenceOf(report, signal)).catch(() => {});
    return work;
  };
};

export const createAttemptEnds = (ports: TaskActorPorts): AttemptEnds => {
  const { views } = ports.host;
  const fenceOf = createFence(ports);
  const commitProgress = async (): Promise<void> => {
    try {
      await ports.flush();
    } catch (error) {
      asDiskProblem(error);
    }
  };
  const writeReport = createReports(ports, { fenceOf, commitProgress });
  const logSavedWork: AttemptEnds['logSavedWork'] = async (attempt, saved) => {
    if (saved !== null) {
      const { notes: _, ...work } = saved;
      ports.emit(attempt, 'log', { level: 'info', message: describeWork(work), ...work });
    }
    for (const message of await ports.workspace.leftOut(attempt.taskId, attempt.attempt))
      ports.emit(attempt, 'log', { level: 'warn', message });
  };

  return {
    fenceOf,
    commitProgress,
    logSavedWork,
    writeReport,
    keepWork: async (taskId, attempt) => {
      const context = views.contextOf(taskId);
      if (context?.role == null || attempt === 0) return;
      const { role, options } = context;
      try {
        const title = views.knownTask(taskId)?.title ?? taskId;
        const work = await ports.workspace.save({ taskId, attempt, role, options }, title, false);
        await logSavedWork({ taskId, attempt }, work);
      } catch (error) {
        const message = `what was changed stays in its folder: ${messageOf(error)}`;
        ports.emit({ taskId, attempt }, 'log', { level: 'warn', message });
      }
    },
    reportEnd: async (taskId, attempt, label, signal) => {
      const context = views.contextOf(taskId);
      if (context?.role == null || attempt === 0) return;
      const { role, options, outcome } = context;
      const end = reportedEnd(context, label);
      const report = { taskId, attempt, role, options, outcome, ...reviewedWork(context.review) };
      if (end !== null) await writeReport({ ...report, end }, signal).catch(() => {});
    },
  };
};
