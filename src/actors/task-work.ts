import { fromPromise } from 'xstate';
import type { AgentLimits, Backend } from '../machines/agent-context.ts';
import { ServiceError } from '../machines/errors.ts';
import {
  type AttemptOutcome,
  attemptKey,
  type Failure,
  type Finding,
  type Role,
  type RunOptions,
  type TaskId,
} from '../machines/task.ts';
import type { AttemptInput, Verdict } from '../machines/task-context.ts';
import { taskMachine } from '../machines/task-machine.ts';
import type { EndLabel } from '../machines/task-params.ts';
import type { TrackedTask } from '../machines/tracked-task.ts';
import type { Attempts } from './attempts.ts';
import type { EventType } from './events.ts';
import { type AttemptEnd, endWords, type Results, workLine } from './results.ts';
import { resumeFrom } from './resume.ts';
import type { Store } from './store/port.ts';
import type { Tracker } from './tracker/port.ts';
import type { VerifyCommands } from './verify.ts';
import { readWorkLog } from './work-log.ts';
import type { Merged, MergeMode, SavedWork, Workspace } from './workspace/port.ts';

/** What the slots of the task machine are made of. */
export interface TaskWorkPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  readonly attempts: Attempts;
  readonly results: Results;
  readonly verify: VerifyCommands;
  readonly workspace: Workspace;
  /** What becomes of finished work (`workspace.merge`). */
  readonly mergeMode: () => MergeMode;
  readonly emit: (attempt: Pick<AttemptInput, 'taskId' | 'attempt'>, type: EventType, data: unknown) => void;
  readonly limits: (options: RunOptions, role: Role) => AgentLimits;
  /** The facts behind the guards of a run, as they are now. */
  readonly lookUp: (taskId: TaskId, options: RunOptions, role: Role) => Promise<Finding>;
  readonly backendOf: (options: RunOptions, role: Role) => Backend;
  readonly modelOf: (options: RunOptions, role: Role) => { readonly name: string; readonly disclaimer: string | null };
  /** Keeps what the tracker says now for the views; called before a transition that depends on it. */
  readonly refresh: (taskId: TaskId) => Promise<TrackedTask | null>;
  /** The task as the tracker had it last: what was done is recorded also while the tracker is away. */
  readonly knownTask: (taskId: TaskId) => TrackedTask | null;
  /** 0 (first) to 4, as the tracker said last. */
  readonly priorityOf: (taskId: TaskId) => number;
  readonly contextOf: (taskId: TaskId) => {
    readonly role: Role | null;
    readonly options: RunOptions;
    readonly startedAt: number | null;
    readonly outcome: AttemptOutcome | null;
    readonly failure: Failure | null;
    readonly reason: string | null;
  } | null;
  /** Whether the end of an attempt is told as a comment in the tracker. */
  readonly notes: () => boolean;
  /** Ends what an earlier server left running of an attempt. */
  readonly endLeftovers: (taskId: TaskId, attempt: number) => Promise<void>;
  /** Commits gathered progress, so that what follows stands after it in the journal. */
  readonly flush: () => void;
  readonly now: () => number;
}

const noteAtMost = 2_000;

/** What people who look into the tracker read of an attempt that ended. */
const noteOf = ({ taskId, attempt, role, outcome, end }: Report): string => {
  const isDone = end.status === 'complete';
  const summary = isDone && outcome?.status === 'done' ? `\n\n${outcome.summary}` : '';
  const text = `Attempt ${attempt} (${role}) ${isDone ? 'is done' : endWords(end)}${summary}`;
  const results = `\n\nResults: .beads/tasks/task-${taskId}/30-results.md`;
  return `${text.length > noteAtMost ? `${text.slice(0, noteAtMost)}…` : text}${results}`;
};

/** Of git, which says it in words. */
const noRoom = /No space left on device|Read-only file system|Disk quota exceeded/;

/** A disk that is full, or may not be written, is no fault of the attempt: its results are written when that has passed. */
const unwritable = (error: unknown): never => {
  if (!(error instanceof Error && ('errno' in error || noRoom.test(error.message)))) throw error;
  const detail = `the results cannot be written: ${error.message}`;
  throw new ServiceError(
    'tracker_unavailable',
    { detail, remedy: 'make room, or make .beads writable' },
    { cause: error },
  );
};

type MergeConflict = Extract<Merged, { status: 'conflict' }>;
type Ended = NonNullable<ReturnType<TaskWorkPorts['contextOf']>>;

/** What the tracker is about to be told, as the results say it; null when there is nothing to say. */
const endOf = ({ failure, reason }: Ended, label: EndLabel): AttemptEnd | null => {
  if (label === 'agent-cancelled') return { status: 'cancelled', reason };
  return failure === null ? null : { status: 'failed', failure };
};

type Report = AttemptInput & { readonly outcome: AttemptOutcome | null; readonly end: AttemptEnd };

/** The task machine with its slots filled: each does one thing in the world and can be repeated after a restart. */
export const provideTaskWork = (ports: TaskWorkPorts) => {
  const { tracker, store, attempts, results } = ports;

  /** Nothing of the attempt runs any more, in this process or left by an earlier one, and its progress is on disk. */
  const quiesce = async (taskId: TaskId, attempt: number): Promise<void> => {
    await attempts.quiesce(taskId, attempt);
    await ports.endLeftovers(taskId, attempt);
    ports.flush();
  };

  const afterTracker = async (taskId: TaskId, change: Promise<Verdict>): Promise<Verdict> => {
    const verdict = await change;
    await ports.refresh(taskId);
    return verdict;
  };

  const writeReport = async (report: Report): Promise<SavedWork | null> => {
    const { taskId, attempt, role, options, outcome, end } = report;
    // Also of a task whose line is away for a while, as another branch may not have it.
    const task = (await ports.refresh(taskId).catch(() => null)) ?? ports.knownTask(taskId);
    if (task === null) throw new Error(`task ${taskId} is gone from the tracker`);
    ports.flush();
    const work = await ports.workspace.save({ taskId, attempt, role, options }, task.title);
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
    });
    if (ports.notes()) await tracker.note(taskId, noteOf(report)).catch(() => {});
    return work;
  };

  const tellOf = (attempt: Pick<AttemptInput, 'taskId' | 'attempt'>, { notes, ...work }: SavedWork): void => {
    ports.emit(attempt, 'log', { level: 'info', message: workLine(work), ...work });
    for (const message of notes) ports.emit(attempt, 'log', { level: 'warn', message });
  };

  /** However an attempt ends, what it changed is kept. */
  const keepWork = async (taskId: TaskId, attempt: number): Promise<void> => {
    const context = ports.contextOf(taskId);
    if (context?.role == null || attempt === 0) return;
    const { role, options } = context;
    try {
      const work = await ports.workspace.save(
        { taskId, attempt, role, options },
        ports.knownTask(taskId)?.title ?? taskId,
      );
      if (work !== null) tellOf({ taskId, attempt }, work);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      ports.emit({ taskId, attempt }, 'log', {
        level: 'warn',
        message: `what was changed stays in its folder: ${why}`,
      });
    }
  };

  /** Somebody must put together what git could not: a task of its own says so, once. */
  const askForMerge = async (input: AttemptInput, title: string, conflict: MergeConflict): Promise<void> => {
    const { taskId, attempt } = input;
    const label = `merge-of:${taskId}`;
    const isAsked = (await tracker.list()).some(({ status, labels }) => status !== 'closed' && labels.includes(label));
    if (isAsked) return;
    const files = conflict.files.map((file) => `- ${file}`).join('\n');
    await tracker.create({
      title: `Merge the work of ${taskId}`,
      description: `The work of ${taskId} (${title}, attempt ${attempt}) is on the branch ${conflict.branch} and was not merged: ${conflict.why}.\n${files}\nSee it with: agent diff ${taskId}\nWhen nothing is in the way any more: agent merge ${taskId}`,
      priority: 1,
      labels: [label],
      dependencies: [],
    });
  };

  /** Every attempt leaves its results; that they could not be written must not keep the task from its end. */
  const reportEnd = async (taskId: TaskId, attempt: number, label: EndLabel): Promise<void> => {
    const context = ports.contextOf(taskId);
    if (context?.role == null || attempt === 0) return;
    const { role, options, outcome } = context;
    const end = endOf(context, label);
    if (end !== null) await writeReport({ taskId, attempt, role, options, outcome, end }).catch(() => {});
  };

  return taskMachine.provide({
    actors: {
      lookUp: fromPromise(({ input }: { input: { taskId: TaskId; options: RunOptions; role: Role } }) =>
        ports.lookUp(input.taskId, input.options, input.role),
      ),
      waitForSlot: fromPromise<void, { taskId: TaskId; role: Role; submittedAt: number }>(({ input, signal }) =>
        attempts.waitForSlot({ ...input, priority: ports.priorityOf(input.taskId) }, signal),
      ),
      holdSlot: fromPromise<void, { taskId: TaskId; role: Role }>(({ input, signal }) =>
        attempts.holdSlot(input.taskId, input.role, signal),
      ),
      claim: fromPromise<Verdict, AttemptInput>(({ input }) => afterTracker(input.taskId, tracker.claim(input.taskId))),
      runAttempt: fromPromise<
        AttemptOutcome,
        AttemptInput & { readonly feedback: { readonly round: number; readonly text: string } | null }
      >(async ({ input, signal }) => {
        const { taskId, attempt, role, options, feedback } = input;
        const limits = ports.limits(options, role);
        const earlier = store.actor(attemptKey(taskId, attempt));
        const backend = ports.backendOf(options, role);
        if (earlier === null) return attempts.run({ taskId, attempt, role, backend, options, limits }, signal);
        const found = resumeFrom(earlier, feedback);
        if ('outcome' in found) return found.outcome;
        return attempts.run({ taskId, attempt, role, options, limits, resume: found.resume }, signal);
      }),
      verify: fromPromise<{ readonly failure: Failure | null }, AttemptInput>(({ input, signal }) =>
        attempts.track(attemptKey(input.taskId, input.attempt), ports.verify(input, signal)),
      ),
      recordResults: fromPromise<
        { readonly toMerge: boolean },
        AttemptInput & { readonly outcome: AttemptOutcome | null }
      >(({ input }) =>
        writeReport({ ...input, end: { status: 'complete' } }).then((work) => {
          if (work !== null) tellOf(input, work);
          return { toMerge: work !== null && ports.mergeMode() !== 'none' };
        }, unwritable),
      ),
      mergeWork: fromPromise<void, AttemptInput>(async ({ input }) => {
        const { taskId, attempt } = input;
        const title = ports.knownTask(taskId)?.title ?? taskId;
        const merged = await ports.workspace.merge(taskId, attempt, ports.mergeMode(), title);
        if (merged.status === 'nothing') return;
        const isMerged = merged.status === 'merged';
        const message = isMerged ? `merged into ${merged.into}` : `not merged: ${merged.why}`;
        ports.emit(input, 'log', { level: isMerged ? 'info' : 'warn', message });
        if (!isMerged) await askForMerge(input, title, merged);
      }),
      closeInTracker: fromPromise<
        Verdict,
        { taskId: TaskId; attempt: number; role: Role | null; reason: string | null }
      >(({ input: { taskId, role, reason } }) => {
        const words = role === null ? 'Closed by hand with agent close' : `Completed by agent-server (role: ${role})`;
        return afterTracker(taskId, tracker.close(taskId, reason ?? words));
      }),
      reopenInTracker: fromPromise<Verdict, { taskId: TaskId }>(({ input }) =>
        afterTracker(input.taskId, tracker.reopen(input.taskId)),
      ),
      standDown: fromPromise<void, AttemptInput & { readonly reason: string | null }>(async ({ input }) => {
        const { taskId, attempt, role, options, reason } = input;
        await quiesce(taskId, attempt);
        await keepWork(taskId, attempt);
        const end = { status: 'cancelled', reason } as const;
        await writeReport({ taskId, attempt, role, options, outcome: null, end }).catch(() => {});
      }),
      release: fromPromise<void, { taskId: TaskId; attempt: number; label: EndLabel }>(
        async ({ input: { taskId, attempt, label } }) => {
          await quiesce(taskId, attempt);
          await keepWork(taskId, attempt);
          await reportEnd(taskId, attempt, label);
          await tracker.release(taskId, label);
          await ports.refresh(taskId);
        },
      ),
    },
  });
};
