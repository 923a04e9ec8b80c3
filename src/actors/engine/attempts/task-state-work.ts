import { z } from 'zod';
import type { AgentContext, Resume } from '../../../machines/agent/agent-context.ts';
import { agentRestart } from '../../../machines/agent/restart.ts';
import type { Rework } from '../../../machines/review.ts';
import type { Acceptance, Cut } from '../../../machines/task/task-context.ts';
import { type TaskMachine, taskMachine } from '../../../machines/task/task-machine.ts';
import type {
  AttemptInput,
  AttemptOutcome,
  Role,
  RunOptions,
  TaskId,
} from '../../../machines/task.ts';
import { persistedSnapshot } from '../../journal/snapshots.ts';
import type { SavedActor } from '../../store/port.ts';
import { defaultCloseReason, type Fence, type StatusChange } from '../../tracker/port.ts';

import { sendsBack } from '../merging/rework.ts';
import { type AttemptEnds, asDiskProblem, createAttemptEnds } from './attempt-end.ts';
import type { TaskActorPorts } from './system-ports.ts';

const savedSchema = z.looseObject({
  status: z.enum(['active', 'done', 'error', 'stopped']),
  value: z.string(),
  context: z.record(z.string(), z.unknown()),
  output: z.unknown().optional(),
});

type Feedback = { readonly round: number; readonly text: string };

/** @throws for a state that the machine of this server lacks, or that no agent leaves */
const resumeState = (value: string, context: AgentContext, id: string): Resume['at'] => {
  const row = Object.entries(agentRestart).find(([state]) => state === value)?.[1];
  if (row === undefined) throw new Error(`this server does not know the state ${value} of ${id}`);
  if (row === 'over') throw new Error(`the agent ${id} had ended in the state ${value}`);
  return typeof row === 'function' ? row(context) : row;
};

/** While `pausing`, `deadlineAt` ends the pause; the attempt's own deadline is `limitAt`. */
const deadlineOf = (value: string, { deadlineAt, limitAt }: AgentContext): number | null =>
  value === 'pausing' ? (limitAt ?? deadlineAt) : deadlineAt;

/** A finished agent whose work failed a check continues. The task has what it left unread. */
const resumeWithFeedback = (context: AgentContext, { round, text }: Feedback): Resume => ({
  at: null,
  context: {
    ...context,
    round,
    finish: null,
    repeats: 0,
    answer: { from: 'check', text, allowed: true },
    unread: undefined,
    heard: undefined,
  },
});

/** The clock of a parked attempt goes on where it stopped. */
const resumeParked = (context: AgentContext, now: number): Resume => ({
  at: context.resumeAt,
  context: { ...context, deadlineAt: now + context.remainingMs, limitAt: null },
});

/**
 * Continues an agent of an earlier process (ADR 0010) or a parked one: from its saved state, or, when it
 * had ended, with its outcome.
 */
export const resumeFrom = (
  saved: SavedActor,
  feedback: Feedback | null,
  now: number,
): { readonly resume: Resume } | { readonly outcome: AttemptOutcome } => {
  const { status, value, context, output } = savedSchema.parse(persistedSnapshot(saved));
  const known = context as unknown as AgentContext;
  if (value === 'parked') return { resume: resumeParked(known, now) };
  if (status === 'done')
    return feedback !== null && known.round < feedback.round && known.failure === null
      ? { resume: resumeWithFeedback(known, feedback) }
      : { outcome: output as AttemptOutcome };
  const at = resumeState(value, known, saved.id);
  const deadlineAt = deadlineOf(value, known);
  return { resume: { at, context: { ...known, deadlineAt, limitAt: null } } };
};

/** Less than the chart gives it: work that waits long for its turn, or for its test, is not failed. */
const longestMergeMs = 60 * 60_000;

const mergeInTime = async (
  { merges, workspace, choices: { mergeMode, landing } }: TaskActorPorts,
  input: AttemptInput,
  signal: AbortSignal,
): Promise<Rework | null> => {
  const { taskId, attempt, review } = input;
  const style = mergeMode(input);
  if (style === 'none') return null;
  const limit = AbortSignal.timeout(longestMergeMs);
  const [merged] = merges.merge(
    [{ taskId, attempt, style, verify: true, by: 'task' }],
    AbortSignal.any([signal, limit]),
  );
  try {
    const outcome = (await merged) ?? { status: 'nothing' };
    return sendsBack(outcome, landing(), review?.rework?.round ?? 0);
  } catch (error) {
    if (signal.aborted || !limit.aborted) throw error;
    const why = `its turn and its test took longer than ${longestMergeMs / 60_000} minutes`;
    await workspace.noteRefused(taskId, attempt, {
      status: 'conflict',
      branch: '',
      why,
      files: [],
    });
    return null;
  }
};

/** The actors of the task chart. Each does one thing and can be repeated after a restart. */
export const provideStateWork = (ports: TaskActorPorts): TaskMachine => {
  const ends = createAttemptEnds(ports);
  const withSlots = provideSlotActors(taskMachine, ports);
  const withAttempts = provideAttemptActors(withSlots, ports, ends);
  const prepare = preparing(ports);
  return provideStopActors(
    provideTrackerActors(withAttempts, ports, ends, prepare),
    ports,
    ends,
    prepare,
  );
};

type SlotInput = {
  readonly taskId: TaskId;
  readonly role: Role;
  readonly options: RunOptions;
  readonly backend: string | null;
};

type Prepare = (
  change: StatusChange,
  fence: Fence,
  cut?: () => Cut,
) => Promise<Acceptance & Partial<Cut>>;

/** Tells the tracker of a change, or keeps it for the commit of the transition that follows. */
const preparing =
  ({ tracker, host: { prepared, refresh }, flush }: TaskActorPorts): Prepare =>
  async (change, fence, cut) => {
    const committed = async (): Promise<void> => {
      await flush();
      // What was saved with it takes effect in this turn, and may have ended this work.
      await new Promise(setImmediate);
      fence();
    };
    const answer = await tracker.prepare(change, { fence, committed });
    if (answer.toCommit === undefined) await refresh(change.id);
    return prepared.keep(answer, cut?.());
  };

const provideSlotActors = (
  machine: TaskMachine,
  { invoked, slots, host, choices, budgets }: TaskActorPorts,
): TaskMachine => {
  const requestOf = <Input extends SlotInput>({ options, ...input }: Input) => ({
    ...input,
    priority: host.views.priorityOf(input.taskId),
    backend: input.backend ?? choices.limitedBackendOf(options, input.role),
  });
  return machine.provide({
    actors: {
      requestSlot: invoked.actor((input, signal) => slots.joinQueue(requestOf(input), signal)),
      // The budget may have been used up while it waited; then its slot goes to another.
      waitForSlot: invoked.actor(
        async (input, signal) =>
          (await slots.awaitGrant({ ...requestOf(input), admitted: true }, signal)) ??
          budgets.parking(input.options, input.role),
      ),
      holdSlot: invoked.actor(({ taskId, role }, signal) => slots.holdSlot(taskId, role, signal)),
    },
  });
};

const provideAttemptActors = (
  machine: TaskMachine,
  ports: TaskActorPorts,
  ends: AttemptEnds,
): TaskMachine => {
  const { invoked, agentRuns } = ports;
  return machine.provide({
    actors: {
      runAttempt: invoked.actor(async ({ feedback, ...input }, signal) => {
        const { taskId, attempt, role, options } = input;
        const limits = ports.choices.limits(options, role);
        const earlier = await ports.host.takeOverAgent(taskId, attempt);
        if (earlier === null)
          return agentRuns.run(
            { ...input, backend: ports.choices.backendOf(options, role), limits },
            signal,
          );
        const found = resumeFrom(earlier, feedback, ports.now());
        if ('outcome' in found) return found.outcome;
        // It counts for the run that let it go on.
        const { at, context } = found.resume;
        const resume = {
          at,
          context: { ...context, options: { ...context.options, run: options.run } },
        };
        return agentRuns.run({ ...input, limits, resume }, signal);
      }),
      verify: invoked.actor(ports.verify),
      recordResults: invoked.actor(async (input, signal) => {
        const work = await ends
          .writeReport({ ...input, end: { status: 'complete' } }, signal)
          .catch(asDiskProblem);
        await ends.logSavedWork(input, work);
        return { toMerge: work !== null && ports.choices.mergeMode(input) !== 'none' };
      }),
      mergeWork: invoked.actor(async (input, signal) => ({
        rework: await mergeInTime(ports, input, signal),
      })),
    },
  });
};

const provideTrackerActors = (
  machine: TaskMachine,
  ports: TaskActorPorts,
  ends: AttemptEnds,
  prepare: Prepare,
): TaskMachine => {
  const { invoked } = ports;
  return machine.provide({
    actors: {
      lookUp: invoked.actor(({ taskId, options, role }) => ports.lookUp(taskId, options, role)),
      awaitDependencies: invoked.actor(({ taskId, unmet }, signal) =>
        ports.waits.wait(taskId, unmet, signal),
      ),
      claim: invoked.actor((input, signal) =>
        prepare({ kind: 'claim', id: input.taskId }, ends.fenceOf(input, signal)),
      ),
      closeInTracker: invoked.actor(({ taskId, attempt, role, reason }, signal) => {
        const defaultReason =
          role === null ? defaultCloseReason : `Completed by agent-server (role: ${role})`;
        const fence = ends.fenceOf({ taskId, attempt }, signal);
        return prepare({ kind: 'close', id: taskId, reason: reason ?? defaultReason }, fence);
      }),
      reopenInTracker: invoked.actor(({ taskId }, signal) =>
        prepare({ kind: 'reopen', id: taskId }, () => signal.throwIfAborted()),
      ),
    },
  });
};

const provideStopActors = (
  machine: TaskMachine,
  ports: TaskActorPorts,
  ends: AttemptEnds,
  prepare: Prepare,
): TaskMachine => {
  const { invoked, agentRuns } = ports;
  /** Stops the attempt, also processes of an earlier server, and commits its progress. */
  const stopProcesses = async (
    taskId: TaskId,
    attempt: number,
    signal: AbortSignal,
  ): Promise<void> => {
    await agentRuns.stop(taskId, attempt);
    await ports.endLeftovers(taskId, attempt);
    await ends.commitProgress();
    signal.throwIfAborted();
  };
  /** Also keeps its changes. */
  const stopAttempt = async (
    taskId: TaskId,
    attempt: number,
    signal: AbortSignal,
  ): Promise<void> => {
    await stopProcesses(taskId, attempt, signal);
    await ends.keepWork(taskId, attempt);
    signal.throwIfAborted();
  };
  return machine.provide({
    actors: {
      standDown: invoked.actor(async ({ reason, ...input }, signal) => {
        await stopAttempt(input.taskId, input.attempt, signal);
        const end = { status: 'cancelled', reason } as const;
        await ends.writeReport({ ...input, outcome: null, end }, signal).catch(() => {});
        return { cut: agentRuns.takeCut(input.taskId, input.attempt) };
      }),
      parkAttempt: invoked.actor(async (input, signal) => {
        const { taskId, attempt } = input;
        await stopProcesses(taskId, attempt, signal);
        const change = { kind: 'release', id: taskId, label: null } as const;
        return prepare(change, ends.fenceOf(input, signal));
      }),
      release: invoked.actor(async ({ taskId, attempt, label }, signal) => {
        await stopAttempt(taskId, attempt, signal);
        await ends.reportEnd(taskId, attempt, label, signal);
        // Attempt 0: the run had no slot, and the attempt of the task is an earlier one.
        const fence =
          attempt === 0 ? () => signal.throwIfAborted() : ends.fenceOf({ taskId, attempt }, signal);
        return prepare({ kind: 'release', id: taskId, label }, fence, () => ({
          cut: agentRuns.takeCut(taskId, attempt),
        }));
      }),
    },
  });
};
