import type { Changes } from '../../actors/workspace/port.ts';
import type { TaskId } from '../../machines/task.ts';
import { CallError, type Client } from '../client/client.ts';

/**
 * The changes of an attempt, the latest by default, as the running server answers; null when it has
 * none. It knows secrets that this shell does not have, and replaces them.
 */
export const askForWork = async (
  client: Client,
  taskId: TaskId,
  attempt?: number,
): Promise<Changes | null> => {
  try {
    return (await client.call('diff', {
      task_id: taskId,
      ...(attempt === undefined ? {} : { attempt }),
    })) as Changes;
  } catch (error) {
    if (error instanceof CallError && error.code === 'event_not_allowed') return null;
    throw error;
  }
};
