import { ServiceError } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Workspace } from '../../workspace/port.ts';
import { requireId } from '../queries/task-id.ts';
import type { ReviewRequest, TaskReviews } from '../service/review-task.ts';
import type { TrainProof } from './prove-train.ts';
import { reworkOf } from './rework.ts';

/**
 * `current`: the work has all that the branch has. `updated`: it got what is new there. Both passed the
 * commands. `sent_back`: another attempt goes on with it, since both sides changed the same lines, or it
 * fails with the branch.
 */
export interface UpdatedTask {
  readonly task_id: string;
  /** The attempt whose work it is; with `sent_back` the one that goes on with it. */
  readonly attempt: number;
  readonly status: 'current' | 'updated' | 'sent_back';
  readonly commit?: string;
  /** The commands that passed. */
  readonly tested?: readonly string[];
  readonly message?: string;
  readonly paths?: readonly string[];
}

export interface TaskUpdates {
  /**
   * Brings the project's branch into the work of a task that is at rest. They reject with
   * `ServiceError` only. @throws task_not_found, event_not_allowed
   */
  update(taskId: string, signal?: AbortSignal): Promise<UpdatedTask>;
}

interface UpdatePorts {
  readonly workspace: Pick<Workspace, 'update' | 'keepUpdate'>;
  readonly proof: Pick<TrainProof, 'proveWork' | 'attemptOf'>;
  readonly status: (taskId: string) => Promise<TaskView>;
  readonly review: TaskReviews['review'];
}

const neverAborted = new AbortController().signal;

const notAllowed = (task_id: TaskId, state: string, allowed: readonly string[]) =>
  new ServiceError('event_not_allowed', { task_id, event: 'update', state, allowed });

export const createUpdate = (ports: UpdatePorts): TaskUpdates['update'] => {
  const { workspace, proof, status, review } = ports;

  return async (given, signal = neverAborted) => {
    const task = await status(given);
    const { attempt } = task;
    const taskId = requireId(task.task_id);
    const isAtRest = ['complete', 'failed', 'cancelled'].includes(task.status);
    if (!isAtRest) throw notAllowed(taskId, task.status, ['cancel', 'update it when it has ended']);
    const found = attempt === 0 ? null : await workspace.update(taskId, attempt, signal);
    if (found === null)
      throw notAllowed(taskId, 'without work that can be merged', ['diff', 'run', 'reopen']);
    if (found.status === 'conflict' && found.same_lines !== true)
      throw notAllowed(taskId, found.why, ['diff', 'merge']);

    const sendBack = async (
      trouble: Parameters<typeof reworkOf>[0],
      about: Pick<UpdatedTask, 'message' | 'paths'>,
    ): Promise<UpdatedTask> => {
      const request: ReviewRequest = { verdict: 'request_changes', attempt, comments: [] };
      await review(taskId, { ...request, rework: reworkOf(trouble, 0) });
      return { task_id: taskId, attempt: attempt + 1, status: 'sent_back', ...about };
    };

    if (found.status === 'conflict')
      return sendBack(found, { message: found.why, paths: found.files });
    const input = await proof.attemptOf(taskId, attempt);
    const proven = await proof.proveWork(found, input, signal);
    if (!proven.passed)
      return sendBack({ ...proven, files: [] }, { message: `with ${found.into}: ${proven.why}` });
    const passed = { tested: proven.commands ?? [] };
    if (found.status === 'current')
      return { task_id: taskId, attempt, status: 'current', commit: found.commit, ...passed };
    await workspace.keepUpdate(taskId, attempt, found);
    return { task_id: taskId, attempt, status: 'updated', commit: found.commit, ...passed };
  };
};
