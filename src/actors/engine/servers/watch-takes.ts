import type { TaskId } from '../../../machines/task.ts';
import type { Journal } from '../../journal/journal.ts';
import type { TaskHost } from '../tasks/task-host.ts';

/** A run of another server tells of a task that it took, maybe before that server does. */
export const watchTakes = (
  {
    journal,
    host,
  }: { readonly journal: Pick<Journal, 'onCommit'>; readonly host: Pick<TaskHost, 'live'> },
  drop: (taskIds: readonly string[]) => void,
): void => {
  const waits = (taskId: string): boolean =>
    host.live
      .get(taskId as TaskId)
      ?.actor.getSnapshot()
      .hasTag('phase:waiting_for_slot') === true;
  journal.onCommit((entries) => {
    const began = entries.filter(
      ({ type, data, taskId }) =>
        type === 'status_update' && data.includes('"status":"started"') && waits(taskId),
    );
    if (began.length === 0) return;
    // A run of our own has begun then.
    setImmediate(() => {
      const taken = began.map(({ taskId }) => taskId).filter(waits);
      if (taken.length > 0) drop(taken);
    });
  });
};
