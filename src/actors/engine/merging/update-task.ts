import { ServiceError } from '../../../machines/errors.ts';
import type { MergeConflict } from '../../../machines/merge-queue/merge-queue-context.ts';
import type { Onto } from '../../../machines/review.ts';
import type { TaskId } from '../../../machines/task.ts';
import { entry } from '../../journal/event-types.ts';
import type { TaskView } from '../../journal/task-view.ts';
import { createSerialQueues } from '../../process/serial-queue.ts';
import type { Answer, NewEntry } from '../../store/port.ts';
import type { Updated, Workspace } from '../../workspace/port.ts';
import type { WorkReads } from '../../workspace/worktrees/work-view.ts';
import type { MergeSettings } from '../attempts/settings.ts';
import { requireId } from '../queries/task-id.ts';
import type { ReviewRequest, TaskReviews } from '../service/review-task.ts';
import type { TrainProof } from './prove-train.ts';
import { reworkOf } from './rework.ts';

/**
 * `current`: the work has all that the branch has. `updated`: it got what is new there. Both passed the
 * commands. `sent_back`: another attempt goes on with it, since both sides changed the same lines, it
 * fails with the branch, or its last attempt failed. `refused`: nothing was done.
 */
export interface UpdatedTask {
  readonly task_id: string;
  /** The attempt whose work it is; with `sent_back` the one that goes on with it. */
  readonly attempt: number;
  readonly status: 'current' | 'updated' | 'sent_back' | 'refused';
  readonly commit?: string;
  /** The commands that passed. */
  readonly tested?: readonly string[];
  readonly message?: string;
  readonly paths?: readonly string[];
}

export interface TaskUpdates {
  /**
   * Brings the project's branch, or one of a forge, into the work of a task that is at rest. They
   * reject with `ServiceError` only. @throws task_not_found, event_not_allowed
   */
  update(taskId: string, signal?: AbortSignal, onto?: Onto): Promise<UpdatedTask>;
}

/** The updates that are tested now: shown as tests of the queue are, and ended as those. */
export interface RunningUpdates {
  readonly withRunning: (workOf: WorkReads) => WorkReads;
  /** The work stays as it was. @returns whether one ran */
  stop(taskId: TaskId): boolean;
  /** @returns null when it was stopped */
  run<Result>(
    taskId: TaskId,
    signal: AbortSignal,
    test: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result | null>;
}

export const createRunningUpdates = (): RunningUpdates => {
  const running = new Map<TaskId, AbortController>();
  return {
    withRunning: (workOf) => async (taskId, attempt) => {
      const work = await workOf(taskId, attempt);
      if (work === null || !running.has(taskId)) return work;
      return { ...work, merge: { state: 'testing', message: 'its update is tested' } };
    },
    stop: (taskId) => {
      const found = running.get(taskId);
      found?.abort();
      return found !== undefined;
    },
    run: async (taskId, signal, test) => {
      const own = new AbortController();
      running.set(taskId, own);
      try {
        return await test(AbortSignal.any([signal, own.signal]));
      } catch (error) {
        if (own.signal.aborted) return null;
        throw error;
      } finally {
        running.delete(taskId);
      }
    },
  };
};

interface UpdatePorts {
  readonly workspace: Pick<Workspace, 'update' | 'keepUpdate'>;
  readonly updates: RunningUpdates;
  readonly proof: Pick<TrainProof, 'proveWork' | 'attemptOf'>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly review: TaskReviews['review'];
  readonly record: (entry: NewEntry) => Answer<void>;
  readonly landing: () => Pick<MergeSettings, 'regenerate'>;
  readonly now: () => number;
}

const neverAborted = new AbortController().signal;

const notAllowed = (task_id: TaskId, state: string, allowed: readonly string[]) =>
  new ServiceError('event_not_allowed', { task_id, event: 'update', state, allowed });

/** @throws event_not_allowed */
const requireUpdatable = ({ task_id, status, attempt, work }: TaskView): TaskId => {
  const taskId = requireId(task_id);
  const again = status === 'complete' ? 'reopen' : 'retry';
  if (status !== 'complete' && status !== 'failed' && status !== 'cancelled')
    throw notAllowed(taskId, status, ['cancel', 'update it when it has ended']);
  if (work?.merged_at !== undefined) throw notAllowed(taskId, 'merged', ['diff', 'undo', again]);
  if (work?.discarded_at !== undefined) throw notAllowed(taskId, 'discarded', ['diff', again]);
  if (attempt === 0) throw notAllowed(taskId, 'without an attempt', ['run']);
  return taskId;
};

type Trouble = Parameters<typeof reworkOf>[0];

/** Says it in the log of the task: who asked may not wait for the answer. */
const noteRefusal = async (
  { record, now }: Pick<UpdatePorts, 'record' | 'now'>,
  updated: UpdatedTask,
): Promise<UpdatedTask> => {
  const { task_id, attempt, status, message } = updated;
  const said = { level: 'warn', message: `not updated: ${message}` };
  if (status === 'refused') await record(entry(requireId(task_id), attempt, 'log', now(), said));
  return updated;
};

export const createUpdate = (ports: UpdatePorts): TaskUpdates['update'] => {
  const { workspace, updates, proof, status, review, record, landing, now } = ports;

  const note = async (taskId: TaskId, attempt: number, message: string): Promise<void> =>
    record(entry(taskId, attempt, 'log', now(), { level: 'info', message }));

  /** Another attempt goes on with it. */
  const sendBack = async (
    { task_id, attempt }: TaskView,
    trouble: Trouble,
    message: string,
    onto: Onto | undefined,
  ): Promise<UpdatedTask> => {
    const request: ReviewRequest = { verdict: 'request_changes', attempt, comments: [] };
    await review(task_id, { ...request, rework: { ...reworkOf(trouble, 0), onto } });
    const paths = trouble.files.length === 0 ? {} : { paths: trouble.files };
    return { task_id, attempt: attempt + 1, status: 'sent_back', message, ...paths };
  };

  /** Work that fits the branch. */
  const test = async (
    task: TaskView,
    taskId: TaskId,
    found: Exclude<Updated, MergeConflict>,
    signal: AbortSignal,
    onto: Onto | undefined,
  ): Promise<UpdatedTask> => {
    const { attempt } = task;
    const { into, commit } = found;
    const refuse = (message: string): UpdatedTask => {
      return { task_id: taskId, attempt, status: 'refused', message };
    };
    const input = await proof.attemptOf(taskId, attempt);
    const proven = await updates.run(taskId, signal, async (either) => {
      await note(taskId, attempt, `what is new on ${into} is tested with its work`);
      return proof.proveWork(found, input, either);
    });
    if (proven === null) return refuse('a person ended its test');
    if (!proven.passed) {
      const { why, hangs } = proven;
      if (hangs === true) return refuse(why);
      if (proven.unblamed === true)
        return refuse(`${into} itself does not pass, without this work: ${why}`);
      return sendBack(task, { ...proven, files: [] }, `with ${into}: ${why}`, onto);
    }
    const why = await workspace.keepUpdate(taskId, attempt, found);
    if (why !== null) return refuse(why);
    const isNew = found.status === 'clean';
    if (isNew) {
      await note(taskId, attempt, `its branch has what is new on ${into} (${commit.slice(0, 12)})`);
    }
    const status = isNew ? 'updated' : 'current';
    return { task_id: taskId, attempt, status, commit, tested: proven.commands ?? [] };
  };

  const updateOne = async (
    given: string,
    signal: AbortSignal,
    onto: Onto | undefined,
  ): Promise<UpdatedTask> => {
    const task = await status(given);
    const { attempt } = task;
    const taskId = requireUpdatable(task);
    const found = await workspace.update(taskId, attempt, signal, onto);
    const again = task.status === 'complete' ? 'reopen' : 'retry';
    if (found === null) throw notAllowed(taskId, 'without work', [again]);
    if (found.status !== 'conflict' && task.status === 'complete')
      return test(task, taskId, found, signal, onto);
    const isMade = (file: string): boolean => Object.hasOwn(landing().regenerate, file);
    const areMade =
      found.status === 'conflict' && found.files.length > 0 && found.files.every(isMade);
    // An attempt of an agent would cost and do no more than a merge, unless that was refused.
    if (areMade && onto === undefined && task.work?.merge?.state !== 'refused') {
      const message = `only files of merge.regenerate conflict, which a merge makes anew: agent merge ${taskId}`;
      return { task_id: taskId, attempt, status: 'refused', message, paths: found.files };
    }
    const why = found.status === 'conflict' ? found.why : `attempt ${attempt} is ${task.status}`;
    if (found.status !== 'conflict') return sendBack(task, { why, files: [] }, why, onto);
    return found.same_lines === true
      ? sendBack(task, found, why, onto)
      : { task_id: taskId, attempt, status: 'refused', message: why };
  };

  const inTurn = createSerialQueues();
  return (given, signal = neverAborted, onto) =>
    inTurn(given, async () => {
      signal.throwIfAborted();
      return noteRefusal(ports, await updateOne(given, signal, onto));
    });
};
