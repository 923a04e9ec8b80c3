import { isServiceError } from '../../../machines/errors.ts';
import type { Published, Seen } from '../../../machines/pull-request/pull-request-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TaskView } from '../../journal/task-view.ts';

/** Null: there is no such task any more. */
export const findTask = (
  status: (taskId: string) => Promise<TaskView>,
  taskId: TaskId,
): Promise<TaskView | null> =>
  status(taskId).catch((error: unknown) => {
    if (isServiceError(error) && error.code === 'task_not_found') return null;
    throw error;
  });

/** The task, beside the attempt that was pushed. */
export const standOf = (
  task: TaskView | null,
  { attempt }: Pick<Published, 'attempt'>,
): Seen['task'] => {
  if (task === null || task.status === 'cancelled') return 'unwanted';
  if (task.attempt === attempt && task.work?.discarded_at !== undefined) return 'unwanted';
  if (task.status === 'failed') return 'failed';
  if (task.phase === 'waiting_for_run') return 'reopened';
  if (task.status !== 'complete') return 'busy';
  return task.attempt > attempt ? 'newer' : 'same';
};
