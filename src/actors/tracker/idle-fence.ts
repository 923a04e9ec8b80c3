import { isServiceError, ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { ActorReads } from '../store/port.ts';
import type { Fence } from './port.ts';

/** A fence that stops a correction of an idle task when an attempt has started meanwhile. */
export const onlyWhileIdle =
  (store: Pick<ActorReads, 'actor'>, id: TaskId): Fence =>
  () => {
    if (store.actor(id)?.pending === true)
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
