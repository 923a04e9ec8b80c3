import { isServiceError, ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { Fence } from './port.ts';

/** A fence that stops a correction of an idle task when a run has begun meanwhile. */
export const onlyWhileIdle =
  (isPending: (taskId: TaskId) => boolean, id: TaskId): Fence =>
  () => {
    if (isPending(id))
      throw new ServiceError('event_not_allowed', {
        task_id: id,
        event: 'release',
        state: 'started',
        allowed: [],
      });
  };

/** Swallows the refusal of `onlyWhileIdle`. */
export const ignoreStartedRun = (error: unknown): void => {
  if (!isServiceError(error) || error.code !== 'event_not_allowed') throw error;
};
