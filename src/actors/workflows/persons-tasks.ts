import { isForPerson } from '../../machines/for-person.ts';
import type { TaskId } from '../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import type { WorkflowSnapshot } from '../../machines/workflow-machine.ts';
import { canRead } from '../journal/chart-versions.ts';
import { persistedSnapshot } from '../journal/snapshots.ts';
import type { ActorReads } from '../store/port.ts';
import type { TrackerReads } from '../tracker/port.ts';

/** The tasks for which workflows wait for a person now. */
export const readPersonsTasks = async (
  store: Pick<ActorReads, 'openWorkflows'>,
  tracker: Pick<TrackerReads, 'findMany'>,
): Promise<readonly TrackedTask[]> => {
  const ids: TaskId[] = [];
  for (const saved of (await store.openWorkflows()).filter(canRead)) {
    const { context }: Pick<WorkflowSnapshot, 'context'> = persistedSnapshot(saved);
    for (const { taskId, phase, round } of context.tasks)
      if (phase === context.phase && round === context.round) ids.push(taskId);
  }
  const found = ids.length === 0 ? [] : await tracker.findMany(ids);
  return found.filter(
    (task) => task.ready && isForPerson(task.labels) && statusInTracker(task) === 'queued',
  );
};
