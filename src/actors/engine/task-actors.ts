import { type AttemptInput, attemptKey, type TaskId } from '../../machines/task.ts';
import type { Verdict } from '../../machines/task-context.ts';
import { taskMachine } from '../../machines/task-machine.ts';
import type { Merged } from '../workspace/port.ts';
import { createAttemptEnds, unwritable } from './attempt-end.ts';
import { resumeFrom } from './resume.ts';
import type { TaskWorkPorts } from './task-actor-ports.ts';

type MergeConflict = Extract<Merged, { status: 'conflict' }>;
/** The task machine with its slots filled: each does one thing in the world and can be repeated after a restart. */
export const provideTaskWork = (ports: TaskWorkPorts) => {
  const { tracker, store, attempts, invoked } = ports;
  const { writeReport, keepWork, reportEnd, tellOf, fenceOf } = createAttemptEnds(ports);

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

  /** Somebody must put together what git could not: a task of its own says so, once. */
  const askForMerge = async (
    input: AttemptInput,
    title: string,
    conflict: MergeConflict,
    signal: AbortSignal,
  ): Promise<void> => {
    const { taskId, attempt } = input;
    const label = `merge-of:${taskId}`;
    const isAsked = (await tracker.list()).some(({ status, labels }) => status !== 'closed' && labels.includes(label));
    if (isAsked) return;
    signal.throwIfAborted();
    const files = conflict.files.map((file) => `- ${file}`).join('\n');
    await tracker.create({
      title: `Merge the work of ${taskId}`,
      description: `The work of ${taskId} (${title}, attempt ${attempt}) is on the branch ${conflict.branch} and was not merged: ${conflict.why}.\n${files}\nSee it with: agent diff ${taskId}\nWhen nothing is in the way any more: agent merge ${taskId}`,
      priority: 1,
      labels: [label],
      dependencies: [],
    });
  };

  return taskMachine.provide({
    actors: {
      lookUp: invoked.actor(({ taskId, options, role }) => ports.lookUp(taskId, options, role)),
      requestSlot: invoked.actor((input, signal) =>
        attempts.requestSlot({ ...input, priority: ports.priorityOf(input.taskId) }, signal),
      ),
      waitForSlot: invoked.actor((input, signal) =>
        attempts.waitForSlot({ ...input, priority: ports.priorityOf(input.taskId), admitted: true }, signal),
      ),
      holdSlot: invoked.actor(({ taskId, role }, signal) => attempts.holdSlot(taskId, role, signal)),
      claim: invoked.actor((input, signal) =>
        afterTracker(input.taskId, tracker.claim(input.taskId, fenceOf(input, signal))),
      ),
      runAttempt: invoked.actor(async ({ feedback, ...input }, signal) => {
        const { taskId, attempt, role, options } = input;
        const limits = ports.limits(options, role);
        const earlier = store.actor(attemptKey(taskId, attempt));
        if (earlier === null)
          return attempts.run({ ...input, backend: ports.backendOf(options, role), limits }, signal);
        const found = resumeFrom(earlier, feedback);
        if ('outcome' in found) return found.outcome;
        return attempts.run({ ...input, limits, resume: found.resume }, signal);
      }),
      verify: invoked.actor(ports.verify),
      recordResults: invoked.actor(async (input, signal) => {
        const work = await writeReport({ ...input, end: { status: 'complete' } }, signal).catch(unwritable);
        await tellOf(input, work);
        return { toMerge: work !== null && ports.mergeMode() !== 'none' };
      }),
      mergeWork: invoked.actor(async (input, signal) => {
        const { taskId, attempt } = input;
        const title = ports.knownTask(taskId)?.title ?? taskId;
        const merged = await ports.workspace.merge(taskId, attempt, ports.mergeMode(), title, signal);
        if (merged.status === 'nothing') return;
        const isMerged = merged.status === 'merged';
        const message = isMerged ? `merged into ${merged.into}` : `not merged: ${merged.why}`;
        ports.emit(input, 'log', { level: isMerged ? 'info' : 'warn', message });
        if (!isMerged) await askForMerge(input, title, merged, signal);
      }),
      closeInTracker: invoked.actor(({ taskId, attempt, role, reason }, signal) => {
        const words = role === null ? 'Closed by hand with agent close' : `Completed by agent-server (role: ${role})`;
        const fence = fenceOf({ taskId, attempt }, signal);
        return afterTracker(taskId, tracker.close(taskId, reason ?? words, fence));
      }),
      reopenInTracker: invoked.actor(({ taskId }, signal) =>
        afterTracker(
          taskId,
          tracker.reopen(taskId, () => signal.throwIfAborted()),
        ),
      ),
      standDown: invoked.actor(async ({ reason, ...input }, signal) => {
        const { taskId, attempt } = input;
        await quiesce(taskId, attempt);
        signal.throwIfAborted();
        await keepWork(taskId, attempt);
        signal.throwIfAborted();
        const end = { status: 'cancelled', reason } as const;
        await writeReport({ ...input, outcome: null, end }, signal).catch(() => {});
      }),
      release: invoked.actor(async ({ taskId, attempt, label }, signal) => {
        await quiesce(taskId, attempt);
        signal.throwIfAborted();
        await keepWork(taskId, attempt);
        signal.throwIfAborted();
        await reportEnd(taskId, attempt, label, signal);
        // Of a run that never had a slot the task's attempt is an earlier one.
        const fence = attempt === 0 ? () => signal.throwIfAborted() : fenceOf({ taskId, attempt }, signal);
        await tracker.release(taskId, label, fence);
        await ports.refresh(taskId);
      }),
    },
  });
};
