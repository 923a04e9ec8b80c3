import type { TaskId } from '../../../machines/task.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Store, StoreReads, UsageDay } from '../../store/port.ts';
import { dayOf } from '../../store/rows/write-changes.ts';
import type { WorkReads } from '../../workspace/worktrees/work-view.ts';
import { attachmentsOf } from './attach-images.ts';

export interface UsageReport {
  readonly days: readonly UsageDay[];
  readonly total: Omit<UsageDay, 'day' | 'role'>;
  /** By every call of a model, those of attempts that are not over included; 0 without a price. */
  readonly spent: { readonly day_usd: number; readonly month_usd: number };
}

const noUsageTotal: UsageReport['total'] = {
  attempts: 0,
  complete: 0,
  failed: 0,
  cancelled: 0,
  seconds: 0,
  model_calls: 0,
  tool_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
};

const addDay = (sum: UsageReport['total'], more: UsageDay): UsageReport['total'] => {
  const hasCost = sum.cost_usd !== undefined || more.cost_usd !== undefined;
  return {
    attempts: sum.attempts + more.attempts,
    complete: sum.complete + more.complete,
    failed: sum.failed + more.failed,
    cancelled: sum.cancelled + more.cancelled,
    seconds: sum.seconds + more.seconds,
    model_calls: sum.model_calls + more.model_calls,
    tool_calls: sum.tool_calls + more.tool_calls,
    input_tokens: sum.input_tokens + more.input_tokens,
    output_tokens: sum.output_tokens + more.output_tokens,
    cached_tokens: sum.cached_tokens + more.cached_tokens,
    cache_write_tokens: (sum.cache_write_tokens ?? 0) + (more.cache_write_tokens ?? 0) || undefined,
    ...(hasCost ? { cost_usd: (sum.cost_usd ?? 0) + (more.cost_usd ?? 0) } : {}),
  };
};

type UsageSource = Pick<StoreReads, 'usage' | 'attempts' | 'spent'> | null;
type DetailSource = (Pick<StoreReads, 'attempts'> & Pick<Store, 'images'>) | null;

/** Sums of the usage of attempts that are over, per day (UTC) and role, from the day `since`. */
export const usageOf = async (
  store: UsageSource,
  since: string | null,
  now: number,
): Promise<UsageReport> => {
  const days = (await store?.usage(since ?? '')) ?? [];
  const spent = await store?.spent(dayOf(now), null);
  return {
    days,
    total: days.reduce(addDay, noUsageTotal),
    spent: { day_usd: spent?.dayUsd ?? 0, month_usd: spent?.monthUsd ?? 0 },
  };
};

/** Adds the saved work of the latest attempt. */
export const withWork = async (workOf: WorkReads, view: TaskView): Promise<TaskView> => {
  const found = view.attempt === 0 ? null : await workOf(view.task_id as TaskId, view.attempt);
  if (found === null) return view;
  const { conflicts, ...work } = found;
  const missing = conflicts?.map(({ files, ...each }) => ({ ...each, files: [...files] }));
  return {
    ...view,
    work: { ...work, ...(missing === undefined ? {} : { conflicts: missing }) },
  };
};

/** Adds what one task alone shows: its attempts, its images and its saved work. */
export const withDetails = async (
  store: DetailSource,
  workOf: WorkReads,
  view: TaskView,
): Promise<TaskView> => {
  const ended = (await store?.attempts(view.task_id)) ?? [];
  const images = (await store?.images.attached(view.task_id)) ?? [];
  const attempts = await Promise.all(
    ended.map(async ({ endedAt, owner: _, ...rest }) => {
      const merged = (await workOf(view.task_id as TaskId, rest.attempt))?.merged_at;
      const ended_at = new Date(endedAt).toISOString();
      return { ...rest, ended_at, ...(merged === undefined ? {} : { merged_at: merged }) };
    }),
  );
  return {
    ...(await withWork(workOf, view)),
    ...(attempts.length === 0 ? {} : { attempts }),
    ...(images.length === 0 ? {} : { attachments: attachmentsOf(images) }),
  };
};
