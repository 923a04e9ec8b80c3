import type { AttemptInput } from '../../machines/task.ts';
import type { TrackerReads, TrackerWrites } from '../tracker/port.ts';
import type { Merged } from '../workspace/port.ts';

type MergeConflict = Extract<Merged, { status: 'conflict' }>;

/**
 * Creates a task for a person to merge work that git could not merge; once for each task, on which it
 * depends.
 */
export const createMergeTask = async (
  tracker: Pick<TrackerReads, 'dependents'> & Pick<TrackerWrites, 'create'>,
  { taskId, attempt }: AttemptInput,
  title: string,
  conflict: MergeConflict,
  signal: AbortSignal,
): Promise<void> => {
  const label = `merge-of:${taskId}`;
  const exists = (await tracker.dependents(taskId)).some(
    ({ status, labels }) => status !== 'closed' && labels.includes(label),
  );
  if (exists) return;
  signal.throwIfAborted();
  const files = conflict.files.map((file) => `- ${file}`).join('\n');
  await tracker.create({
    title: `Merge the work of ${taskId}`,
    description: `The work of ${taskId} (${title}, attempt ${attempt}) is on the branch ${conflict.branch} and was not merged: ${conflict.why}.\n${files}\nSee it with: agent diff ${taskId}\nWhen nothing is in the way any more: agent merge ${taskId}`,
    priority: 1,
    labels: [label],
    dependencies: [taskId],
  });
};
