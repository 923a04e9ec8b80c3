import { ServiceError } from '../../../machines/errors.ts';
import type { TaskId } from '../../../machines/task.ts';
import { createRequestRows } from '../../store/request-rows.ts';
import type { Transacting } from '../../store/rows.ts';
import type { NewTask, TrackedTask, TrackerReads, TrackerWrites } from '../port.ts';

interface CreateParts extends Pick<TrackerReads, 'find'>, Pick<TrackerWrites, 'remove'> {
  readonly create: (task: NewTask) => Promise<TrackedTask>;
}

/**
 * bd writes its task before our request: of two servers that create one for the same request, the
 * second to remember it removes its task again.
 */
export const createOnce = (
  requests: () => Pick<Transacting, 'prepare' | 'write'>,
  { create, find, remove }: CreateParts,
): TrackerWrites['create'] => {
  const firstOf = async (requestId: string, taskId: TaskId): Promise<TaskId> => {
    const db = requests();
    const rows = createRequestRows(db);
    return db.write(function* () {
      const first = yield* rows.taskOf(requestId);
      if (first === null) yield* rows.add(requestId, taskId);
      return (first ?? taskId) as TaskId;
    });
  };
  return async (task, requestId) => {
    const created = await create(task);
    if (requestId === undefined) return created;
    const first = await firstOf(requestId, created.id);
    if (first === created.id) return created;
    await remove(created.id);
    const found = await find(first);
    if (found === null) throw new ServiceError('task_not_found', { task_id: first });
    return found;
  };
};
