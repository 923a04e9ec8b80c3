import { isServiceError, ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { Store } from '../store/port.ts';
import type { Fence } from './port.ts';

/** For who puts a task right of which nothing runs: a run that has begun since is left alone. */
export const onlyWhileIdle =
  (store: Pick<Store, 'actor'>, id: TaskId): Fence =>
  () => {
    if (store.actor(id)?.pending === true)
      throw new ServiceError('event_not_allowed', { task_id: id, event: 'release', state: 'started', allowed: [] });
  };

/** That a run has begun is no fault. */
export const ignoreStartedRun = (error: unknown): void => {
  if (!isServiceError(error) || error.code !== 'event_not_allowed') throw error;
};
