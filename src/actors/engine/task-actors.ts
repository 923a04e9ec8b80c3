import type { TaskId } from '../../machines/task.ts';
import type { Verdict } from '../../machines/task-context.ts';
import { type TaskMachine, taskMachine } from '../../machines/task-machine.ts';
import { type AttemptEnds, asDiskProblem, createAttemptEnds } from './attempt-end.ts';
import { createMergeTask } from './merge-task.ts';
import { resumeFrom } from './resume.ts';
import type { TaskActorPorts } from './task-actor-ports.ts';

/** The actors of the task chart. Each does one thing and can be repeated after a restart. */
export const provideTaskActors = (ports: TaskActorPorts): TaskMachine => {
  const ends = createAttemptEnds(ports);
  const withSlots = provideSlotActors(taskMachine, ports);
  const withAttempts = provideAttemptActors(withSlots, ports, ends);
  return provideStopActors(provideTrackerActors(withAttempts, ports, ends), ports, ends);
};

const provideSlotActors = (machine: TaskMachine, { invoked, slots, priorityOf }: TaskActorPorts): TaskMachine =>
  machine.provide({
    actors: {
      requestSlot: invoked.actor((input, signal) =>
        slots.requestSlot({ ...input, priority: priorityOf(input.taskId) }, signal),
      ),
      waitForSlot: invoked.actor((input, signal) =>
        slots.waitForSlot({ ...input, priority: priorityOf(input.taskId), admitted: true }, signal),
      ),
      holdSlot: invoked.actor(({ taskId, role }, signal) => slots.holdSlot(taskId, role, signal)),
    },
  });

const provideAttemptActors = (machine: TaskMachine, ports: TaskActorPorts, ends: AttemptEnds): TaskMachine => {
  const { invoked, tracker, agentRuns, workspace } = ports;
  return machine.provide({
    actors: {
      runAttempt: invoked.actor(async ({ feedback, ...input }, signal) => {
        const { taskId, attempt, role, options } = input;
        const limits = ports.limits(options, role);
        const earlier = await ports.earlierAgent(taskId, attempt);
        if (earlier === null)
          return agentRuns.run({ ...input, backend: ports.backendOf(options, role), limits }, signal);
        const found = resumeFrom(earlier, feedback);
        if ('outcome' in found) return found.outcome;
        return agentRuns.run({ ...input, limits, resume: found.resume }, signal);
      }),
      verify: invoked.actor(ports.verify),
      recordResults: invoked.actor(async (input, signal) => {
        const work = await ends.writeReport({ ...input, end: { status: 'complete' } }, signal).catch(asDiskProblem);
        await ends.logSavedWork(input, work);
        return { toMerge: work !== null && ports.mergeMode() !== 'none' };
      }),
      mergeWork: invoked.actor(async (input, signal) => {
        const { taskId, attempt } = input;
        const title = ports.knownTask(taskId)?.title ?? taskId;
        const merged = await workspace.merge(taskId, attempt, ports.mergeMode(), title, signal);
        if (merged.status === 'nothing') return;
        const isMerged = merged.status === 'merged';
        const message = isMerged ? `merged into ${merged.into}` : `not merged: ${merged.why}`;
        ports.emit(input, 'log', { level: isMerged ? 'info' : 'warn', message });
        if (!isMerged) await createMergeTask(tracker, input, title, merged, signal);
      }),
    },
  });
};

const provideTrackerActors = (machine: TaskMachine, ports: TaskActorPorts, ends: AttemptEnds): TaskMachine => {
  const { invoked, tracker } = ports;
  const thenRefresh = async (taskId: TaskId, change: Promise<Verdict>): Promise<Verdict> => {
    const verdict = await change;
    await ports.refresh(taskId);
    return verdict;
  };
  return machine.provide({
    actors: {
      lookUp: invoked.actor(({ taskId, options, role }) => ports.lookUp(taskId, options, role)),
      claim: invoked.actor((input, signal) =>
        thenRefresh(input.taskId, tracker.claim(input.taskId, ends.fenceOf(input, signal))),
      ),
      closeInTracker: invoked.actor(({ taskId, attempt, role, reason }, signal) => {
        const defaultReason =
          role === null ? 'Closed by hand with agent close' : `Completed by agent-server (role: ${role})`;
        const fence = ends.fenceOf({ taskId, attempt }, signal);
        return thenRefresh(taskId, tracker.close(taskId, reason ?? defaultReason, fence));
      }),
      reopenInTracker: invoked.actor(({ taskId }, signal) =>
        thenRefresh(
          taskId,
          tracker.reopen(taskId, () => signal.throwIfAborted()),
        ),
      ),
    },
  });
};

const provideStopActors = (machine: TaskMachine, ports: TaskActorPorts, ends: AttemptEnds): TaskMachine => {
  const { invoked, tracker, agentRuns } = ports;
  /** Stops the attempt, also processes of an earlier server, commits its progress and keeps its changes. */
  const stopAttempt = async (taskId: TaskId, attempt: number, signal: AbortSignal): Promise<void> => {
    await agentRuns.stop(taskId, attempt);
    await ports.endLeftovers(taskId, attempt);
    await ends.commitProgress();
    signal.throwIfAborted();
    await ends.keepWork(taskId, attempt);
    signal.throwIfAborted();
  };
  return machine.provide({
    actors: {
      standDown: invoked.actor(async ({ reason, ...input }, signal) => {
        await stopAttempt(input.taskId, input.attempt, signal);
        const end = { status: 'cancelled', reason } as const;
        await ends.writeReport({ ...input, outcome: null, end }, signal).catch(() => {});
      }),
      release: invoked.actor(async ({ taskId, attempt, label }, signal) => {
        await stopAttempt(taskId, attempt, signal);
        await ends.reportEnd(taskId, attempt, label, signal);
        // Attempt 0: the run had no slot, and the attempt of the task is an earlier one.
        const fence = attempt === 0 ? () => signal.throwIfAborted() : ends.fenceOf({ taskId, attempt }, signal);
        await tracker.release(taskId, label, fence);
        await ports.refresh(taskId);
      }),
    },
  });
};
