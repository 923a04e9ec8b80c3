import { ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';

/** @throws task_not_found with all of them, when there are any */
export const refuseUnknown = ([id, ...others]: readonly TaskId[]): void => {
  if (id !== undefined)
    throw new ServiceError('task_not_found', {
      task_id: id,
      ...(others.length === 0 ? {} : { others }),
    });
};
