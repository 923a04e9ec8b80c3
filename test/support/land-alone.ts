import type { Workspace } from '../../src/actors/workspace/port.ts';
import type { Merged, QueueMember } from '../../src/machines/merge-queue/merge-queue-context.ts';
import type { TaskId } from '../../src/machines/task.ts';

/** A member of a merge queue, with what a test does not say. */
export const memberOf = (
  taskId: string,
  attempt: number,
  rest: Partial<QueueMember> = {},
): QueueMember => ({
  ...{ taskId: taskId as TaskId, attempt, title: 'Work', style: 'squash', verify: true },
  ...{ by: 'person', priority: 2, createdAt: '', after: [], tickets: [`${taskId}#${attempt}`] },
  ...rest,
});

/** Merges the work of one attempt, without a queue and without a test. */
export const landAlone = async (
  workspace: Pick<Workspace, 'build' | 'land'>,
  taskId: TaskId,
  attempt: number,
  style: QueueMember['style'],
  title: string,
  signal?: AbortSignal,
): Promise<Merged> => {
  const members = [memberOf(taskId, attempt, { style, title })];
  const train = await workspace.build(members, signal);
  const [ended] = train.ended;
  if (ended !== undefined) return ended.merged;
  const landed = await workspace.land({ ...train, members, commands: null }, signal);
  if (landed.status === 'stopped') return { ...landed.why, branch: train.cars[0]?.branch ?? '' };
  if (landed.status === 'moved') throw new Error('the branch moved while nobody moved it');
  return { status: 'merged', into: landed.into, commit: landed.commits[0] ?? '' };
};
