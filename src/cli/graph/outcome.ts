import type { TaskView } from '../../actors/journal/task-view.ts';
import { describeFailure } from '../../machines/message-of.ts';
import { budgetInReason } from '../../machines/phase.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { oneLine } from '../output/safe-text.ts';
import { isOverBudget, type Progress, type TaskProgress } from './progress.ts';

export interface Skipped {
  readonly task_id: string;
  readonly reason: string;
  readonly code?: string;
}

export const skippedCycle = (skipped: readonly Skipped[]): boolean =>
  skipped.some(({ code }) => code === 'dependency_cycle');

/** A queue that is full skips thousands for one reason. */
const skippedNamedAtMost = 10;

/** Skipped tasks and the reasons, for people: the first by their ids, the others by their number. */
export const skippedTexts = (
  skipped: readonly Skipped[],
): readonly { readonly who: string; readonly why: string }[] => {
  const others = skipped.slice(skippedNamedAtMost);
  const [reason, ...further] = new Set(others.map((each) => each.reason));
  return [
    ...skipped
      .slice(0, skippedNamedAtMost)
      .map((each) => ({ who: each.task_id, why: oneLine(each.reason, 300) })),
    ...(reason === undefined
      ? []
      : [
          {
            who: `${others.length.toLocaleString('en')} more`,
            why:
              further.length === 0 ? oneLine(reason, 300) : 'agent run --dry-run --json says why',
          },
        ]),
  ];
};

export interface StartedRun {
  readonly accepted: readonly {
    readonly task_id: string;
    readonly role: string;
    readonly phase: string;
  }[];
  readonly skipped: readonly Skipped[];
}

/** A run with the tasks that an earlier one started, and that go on. */
export interface FollowedRun extends StartedRun {
  readonly attached: readonly TaskView[];
}

/** The end of the tasks of a run. */
export interface GraphOutcome {
  readonly complete: readonly string[];
  readonly failed: readonly { readonly task_id: string; readonly reason: string }[];
  readonly cancelled: readonly string[];
  /** Tasks that start by themselves when somebody sees to the dependency. */
  readonly waiting: readonly { readonly task_id: string; readonly waits_for: string }[];
  /** Tasks that wait for a budget; absent `until`: only a person lets them go on. */
  readonly over_budget: readonly {
    readonly task_id: string;
    readonly reason: string;
    readonly until?: string;
  }[];
  readonly skipped: readonly Skipped[];
  readonly seconds: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Absent where a price is unknown. */
  readonly cost_usd?: number;
}

const errorReason = ({ error }: TaskView): string =>
  error === undefined ? 'for an unknown reason' : describeFailure(error);

const usagesOf = (tasks: readonly TaskProgress[]): readonly TaskView['usage'][] =>
  tasks.flatMap(({ usage }) => [...usage.values()]).filter(({ model_calls }) => model_calls > 0);

const totalsOf = (tasks: readonly TaskProgress[]) => {
  const usages = usagesOf(tasks);
  const sum = (of: (usage: TaskView['usage']) => number): number =>
    usages.reduce((total, usage) => total + of(usage), 0);
  const isPriced = usages.length > 0 && usages.every(({ cost_usd }) => cost_usd !== undefined);
  return {
    input_tokens: sum(({ input_tokens }) => input_tokens),
    output_tokens: sum(({ output_tokens }) => output_tokens),
    ...(isPriced ? { cost_usd: sum(({ cost_usd }) => cost_usd ?? 0) } : {}),
  };
};

export const outcomeOf = (
  { accepted, attached, skipped }: FollowedRun,
  progress: Progress,
  seconds: number,
): GraphOutcome => {
  const tasks = [...accepted, ...attached].flatMap(({ task_id }) => progress.get(task_id) ?? []);
  const withStatus = (status: string) => tasks.filter(({ view }) => view.status === status);
  const refused = tasks.filter(({ view, isPending }) => view.status === 'queued' && !isPending);
  return {
    complete: withStatus('complete').map(({ view }) => view.task_id),
    failed: withStatus('failed').map(({ view }) => ({
      task_id: view.task_id,
      reason: errorReason(view),
    })),
    cancelled: withStatus('cancelled').map(({ view }) => view.task_id),
    over_budget: tasks
      .filter(({ view }) => isOverBudget(view))
      .map(({ view }) => ({
        task_id: view.task_id,
        reason: view.parked_reason ?? '',
        until: budgetInReason(view.parked_reason) === 'run' ? undefined : view.parked_until,
      })),
    waiting: tasks.flatMap(({ view: { task_id } }) => {
      const waits_for = progress.blocker(task_id);
      return waits_for === null ? [] : [{ task_id, waits_for }];
    }),
    skipped: [
      ...skipped.filter(({ task_id }) => progress.get(task_id)?.view.status !== 'complete'),
      ...refused.map(({ view }) => ({ task_id: view.task_id, reason: errorReason(view) })),
    ],
    seconds: Math.round(seconds * 1_000) / 1_000,
    ...totalsOf(tasks),
  };
};

export const exitCodeFor = (outcome: GraphOutcome): number => {
  const { failed, cancelled, over_budget, waiting, skipped } = outcome;
  // The others go on when there is more money.
  if (over_budget.length > 0) return exitCodes.unavailable;
  if (failed.length > 0) return exitCodes.failed;
  if (cancelled.length > 0) return exitCodes.cancelled;
  if (waiting.length === 0 && skippedCycle(skipped)) return exitCodes.conflict;
  return waiting.length + skipped.length > 0 ? exitCodes.failed : exitCodes.done;
};
