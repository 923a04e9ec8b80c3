import type { MergeConflict, Merged } from '../../../machines/merge-queue/merge-queue-context.ts';
import type { ReviewedWork, Rework } from '../../../machines/review.ts';
import type { TaskContext } from '../../../machines/task/task-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import { type MergeMode, mergeModes } from '../../workspace/port.ts';
import type { WorkReads } from '../../workspace/worktrees/work-view.ts';
import type { MergeSettings } from '../attempts/settings.ts';

export const reworkOf = (
  { why, failed, files }: Pick<MergeConflict, 'why' | 'failed' | 'files'>,
  round: number,
): Rework => {
  const where = files.length === 0 ? '' : `: ${files.slice(0, 10).join(', ')}`;
  return { why: `${why}${where}`, round, ...(failed === undefined ? {} : { failed }) };
};

/**
 * Why another attempt goes on with work that was not merged, without a person (`merge.on_conflict`,
 * `merge.on_red`). Null: a person decides, or it is merged. `before`: how often that happened.
 */
export const sendsBack = (
  merged: Merged,
  { onConflict, onRed, maxRounds }: Pick<MergeSettings, 'onConflict' | 'onRed' | 'maxRounds'>,
  before: number,
): Rework | null => {
  if (merged.status !== 'conflict' || merged.unblamed || before >= maxRounds) return null;
  const isMeant =
    (merged.failed !== undefined && onRed === 'send_back') ||
    (merged.same_lines === true && onConflict === 'resolve');
  return isMeant ? reworkOf(merged, before + 1) : null;
};

/** While another attempt goes on with work that the queue sent back, the earlier work waits to be merged. */
export const withRework =
  (
    workOf: WorkReads,
    contextOf: (taskId: TaskId) => Pick<TaskContext, 'review'> | null | undefined,
  ): WorkReads =>
  async (taskId, attempt) => {
    const { rework, continues } = contextOf(taskId)?.review ?? {};
    if (continues == null || rework === undefined || rework.round === 0)
      return workOf(taskId, attempt);
    const work = await workOf(taskId, continues);
    return work && { ...work, merge: { state: 'waiting', message: rework.why } };
  };

/** How the work of an attempt is merged at its end; work that was sent back is, too. */
export const landsAs = (
  { review }: { readonly review?: ReviewedWork },
  mode: MergeMode,
  { style }: Pick<MergeSettings, 'style'>,
): MergeMode | MergeSettings['style'] =>
  (review?.rework?.round ?? 0) > 0 && mode === mergeModes[0] ? style : mode;
