import type { MergeConflict, Merged } from '../../../machines/merge-queue/merge-queue-context.ts';
import { someOf } from '../../../machines/plural.ts';
import type { ReviewedWork, Rework } from '../../../machines/review.ts';
import type { TaskContext } from '../../../machines/task/task-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { MergeMode } from '../../workspace/port.ts';
import type { WorkReads } from '../../workspace/worktrees/work-view.ts';
import type { MergeSettings } from '../attempts/settings.ts';

export const reworkOf = (
  { why, failed, files }: Pick<MergeConflict, 'why' | 'failed' | 'files'>,
  round: number,
): Rework => {
  const where = files.length === 0 ? '' : `: ${someOf(files)}`;
  return { why: `${why}${where}`, round, failed };
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
    {
      isPending,
      contextOf,
    }: {
      readonly isPending: (taskId: TaskId) => boolean;
      readonly contextOf: (taskId: TaskId) => Pick<TaskContext, 'review'> | null;
    },
  ): WorkReads =>
  async (taskId, attempt) => {
    const { rework, continues } = (isPending(taskId) ? contextOf(taskId)?.review : null) ?? {};
    if (continues == null || rework === undefined || rework.round === 0)
      return workOf(taskId, attempt);
    const work = await workOf(taskId, continues);
    return work && { ...work, merge: { state: 'waiting', message: rework.why } };
  };

/** The style in which an attempt merges at its end. Work that the queue sent back merges in any case. */
export const landsAs = (
  { review }: { readonly review?: ReviewedWork },
  mode: MergeMode,
  { style }: Pick<MergeSettings, 'style'>,
): MergeMode | MergeSettings['style'] =>
  (review?.rework?.round ?? 0) > 0 && mode === 'none' ? style : mode;
