import { isForPerson } from '../../../machines/for-person.ts';
import { statusInTracker, type TrackedTask } from '../../../machines/tracked-task.ts';
import type { WorkflowSnapshot } from '../../../machines/workflow/workflow-machine.ts';
import { persistedSnapshot, readEach } from '../../journal/snapshots.ts';
import type { ActorReads } from '../../store/port.ts';
import type { TrackerReads } from '../../tracker/port.ts';

/** The tasks for which workflows wait for a person now. */
export const readPersonsTasks = async (
  store: Pick<ActorReads, 'openHosted'>,
  tracker: Pick<TrackerReads, 'findMany'>,
): Promise<readonly TrackedTask[]> => {
  const ids = readEach(await store.openHosted('workflow'), (saved) => {
    const { context }: Pick<WorkflowSnapshot, 'context'> = persistedSnapshot(saved);
    const isNow = ({ phase, round }: (typeof context.tasks)[number]): boolean =>
      phase === context.phase && round === context.round;
    return context.tasks.filter(isNow).map(({ taskId }) => taskId);
  }).flat();
  const found = ids.length === 0 ? [] : await tracker.findMany(ids);
  return found.filter(
    (task) => task.ready && isForPerson(task.labels) && statusInTracker(task) === 'queued',
  );
};
