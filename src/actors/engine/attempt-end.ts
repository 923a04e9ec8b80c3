import { ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { AttemptInput, AttemptOutcome, TaskId } from '../../machines/task.ts';
import type { EndLabel } from '../../machines/task-selectors.ts';
import { type AttemptEnd, describeEnd, describeWork } from '../files/results.ts';
import { conflictsOf } from '../journal/snapshots.ts';
import { readWorkLog } from '../journal/tool-call-log.ts';
import type { Fence } from '../tracker/port.ts';
import type { SavedWork } from '../workspace/port.ts';
import type { TaskActorPorts } from './task-actor-ports.ts';

const commentAtMost = 2_000;

/** What people who look into the tracker read of an attempt that ended. */
const trackerComment = ({ taskId, attempt, role, outcome, end }: Report): string => {
  const isDone = end.status === 'complete';
  const summary = isDone && outcome?.status === 'done' ? `\n\n${outcome.summary}` : '';
  const text = `Attempt ${attempt} (${role}) ${isDone ? 'is done' : describeEnd(end)}${summary}`;
  const results = `\n\nResults: .beads/tasks/task-${taskId}/30-results.md`;
  return `${text.length > commentAtMost ? `${text.slice(0, commentAtMost)}…` : text}${results}`;
};

/** Of git, which says it in words. */
const diskProblem = /No space left on device|Read-only file system|Disk quota exceeded/;

/** A disk that is full, or may not be written, is no fault of the attempt: its results are written when that has passed. */
export const asDiskProblem = (error: unknown): never => {
  if (!(error instanceof Error && ('errno' in error || diskProblem.test(error.message)))) throw error;
  const detail = `the results cannot be written: ${error.message}`;
  throw new ServiceError(
    'tracker_unavailable',
    { detail, remedy: 'make room, or make .beads writable' },
    { cause: error },
  );
};

type EndedTask = NonNullable<ReturnType<TaskActorPorts['contextOf']>>;

/** What the tracker is about to be told, as the results say it; null when there is nothing to say. */
const reportedEnd = ({ failure, reason }: EndedTask, label: EndLabel): AttemptEnd | null => {
  if (label === 'agent-cancelled') return { status: 'cancelled', reason };
  return failure === null ? null : { status: 'failed', failure };
};

export type Report = AttemptInput & { readonly outcome: AttemptOutcome | null; readonly end: AttemptEnd };

/** What is left of an attempt when it ends: its work, its files, a note in the tracker. */
export interface AttemptEnds {
  /** @throws when the results cannot be written */
  writeReport(report: Report, signal: AbortSignal): Promise<SavedWork | null>;
  /** Keeps what the attempt changed, however it ended. */
  keepWork(taskId: TaskId, attempt: number): Promise<void>;
  /** Every attempt leaves its results; that they could not be written must not keep the task from its end. */
  reportEnd(taskId: TaskId, attempt: number, label: EndLabel, signal: AbortSignal): Promise<void>;
  /** Says in the journal what was changed, and what of it was not saved. */
  logSavedWork(attempt: Pick<AttemptInput, 'taskId' | 'attempt'>, work: SavedWork | null): Promise<void>;
  /** Lets nobody write to the tracker whose state the chart has left, or whose attempt is not the latest. */
  fenceOf(attempt: Pick<AttemptInput, 'taskId' | 'attempt'>, signal: AbortSignal): Fence;
}

export const createAttemptEnds = (ports: TaskActorPorts): AttemptEnds => {
  const { tracker, store, results } = ports;

  const fenceOf: AttemptEnds['fenceOf'] =
    ({ taskId, attempt }, signal) =>
    () => {
      signal.throwIfAborted();
      const live_attempt = ports.contextOf(taskId)?.attempt ?? attempt;
      if (live_attempt > attempt) throw new ServiceError('stale_attempt', { task_id: taskId, attempt, live_attempt });
    };

  const writeReport: AttemptEnds['writeReport'] = async (report, signal) => {
    const { taskId, attempt, role, options, outcome, end } = report;
    // Also of a task whose line is away for a while, as another branch may not have it.
    const task = (await ports.refresh(taskId).catch(() => null)) ?? ports.knownTask(taskId);
    if (task === null) throw new Error(`task ${taskId} is gone from the tracker`);
    signal.throwIfAborted();
    ports.flush();
    const work = await ports.workspace.save({ taskId, attempt, role, options }, task.title, end.status === 'complete');
    signal.throwIfAborted();
    const model = ports.modelOf(options, role);
    await results.write({
      task,
      attempt,
      role,
      model: model.name,
      disclaimer: model.disclaimer,
      startedAt: ports.contextOf(taskId)?.startedAt ?? ports.now(),
      endedAt: ports.now(),
      outcome,
      end,
      workLog: readWorkLog(store, taskId, attempt),
      work,
      conflicts: conflictsOf(store, taskId, attempt),
    });
    if (ports.notes()) await tracker.note(taskId, trackerComment(report), fenceOf(report, signal)).catch(() => {});
    return work;
  };

  const tellOf: AttemptEnds['logSavedWork'] = async (attempt, saved) => {
    if (saved !== null) {
      const { notes: _, ...work } = saved;
      ports.emit(attempt, 'log', { level: 'info', message: describeWork(work), ...work });
    }
    for (const message of await ports.workspace.leftOut(attempt.taskId, attempt.attempt))
      ports.emit(attempt, 'log', { level: 'warn', message });
  };

  return {
    fenceOf,
    logSavedWork: tellOf,
    writeReport,
    keepWork: async (taskId, attempt) => {
      const context = ports.contextOf(taskId);
      if (context?.role == null || attempt === 0) return;
      const { role, options } = context;
      try {
        const title = ports.knownTask(taskId)?.title ?? taskId;
        const work = await ports.workspace.save({ taskId, attempt, role, options }, title, false);
        await tellOf({ taskId, attempt }, work);
      } catch (error) {
        const why = messageOf(error);
        const message = `what was changed stays in its folder: ${why}`;
        ports.emit({ taskId, attempt }, 'log', { level: 'warn', message });
      }
    },
    reportEnd: async (taskId, attempt, label, signal) => {
      const context = ports.contextOf(taskId);
      if (context?.role == null || attempt === 0) return;
      const { role, options, outcome } = context;
      const end = reportedEnd(context, label);
      if (end !== null) await writeReport({ taskId, attempt, role, options, outcome, end }, signal).catch(() => {});
    },
  };
};
