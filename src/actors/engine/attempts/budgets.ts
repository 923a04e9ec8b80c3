import { randomUUID } from 'node:crypto';
import {
  type BudgetLimits,
  budgetFailure,
  leftOf,
  parkedByBudget,
  type UsedBudget,
  usedBudget,
} from '../../../machines/agent/budget.ts';
import {
  type Failure,
  failureOf,
  type Parking,
  type Role,
  type RunOptions,
} from '../../../machines/task.ts';
import type { UsageReads } from '../../store/port.ts';
import { dayOf } from '../../store/rows/write-changes.ts';
import type { KeptTasks } from '../tasks/loaded-tasks.ts';
import { patiently } from '../tasks/patient-reads.ts';
import type { BackendSelector } from './select-assistant.ts';
import { lower, type Settings } from './settings.ts';

/**
 * Every entry asks these before a paid model call begins. What was spent is read from the store each
 * time, so servers that share it see each other's spending; without a budget nothing is read.
 */
export interface Budgets {
  /** The budget that keeps a run from a further call; null: none does. */
  used(run: RunOptions): Promise<UsedBudget | null>;
  /** Why a paid call may not begin: a budget is used up, or what the call costs would not be known. */
  refusal(run: RunOptions, role: Role): Promise<Failure | null>;
  /** As `used`, for a task that has no slot yet. Null for the scripted model, which costs nothing. */
  parking(run: RunOptions, role: Role): Promise<Parking | null>;
  /** The USD that the run may still cost; null: there is no budget. */
  leftUsd(run: RunOptions): Promise<number | null>;
  /** True when a cost must be known. */
  areSet(run: RunOptions): boolean;
  /** The options of a new run, which has a budget of its own, or of the run that goes on. */
  withRun(options: RunOptions, maxCostUsd?: number, goesOn?: string): RunOptions;
}

export interface BudgetPorts {
  readonly store: Pick<UsageReads, 'spent'>;
  readonly settings: () => Settings;
  readonly backends: Pick<BackendSelector, 'now' | 'unknownPrice'>;
  /** Commits what calls of this server cost. */
  readonly flush: () => unknown;
  readonly now: () => number;
}

/** The scripted model has no costs and no limits. */
export const isFree = (chosen: ReturnType<BackendSelector['now']>): boolean =>
  chosen.backend === 'builtin' && chosen.model?.disclaimer != null;

export const createBudgets = ({ store, settings, backends, flush, now }: BudgetPorts): Budgets => {
  const limitsOf = ({ run }: RunOptions): BudgetLimits => {
    const { budgets, bounds } = settings();
    const runUsd = lower(run?.maxCostUsd ?? budgets.runUsd, bounds.runUsd);
    return { ...budgets, runUsd: run === undefined ? null : runUsd };
  };
  /** `budget.run_usd` counts also before the run has its id. */
  const areSet = ({ run }: RunOptions): boolean =>
    run?.maxCostUsd !== undefined ||
    Object.values(settings().budgets).some((limit) => limit !== null);
  const spent = async ({ run }: RunOptions) => {
    // Where the store is away, the read waits for it.
    await (async () => flush())().catch(() => 'later');
    return patiently(() => store.spent(dayOf(now()), run?.id ?? null));
  };
  const used: Budgets['used'] = async (run) =>
    areSet(run) ? usedBudget(limitsOf(run), await spent(run), now()) : null;
  return {
    used,
    areSet,
    refusal: async (run, role) => {
      const found = await used(run);
      if (found !== null) return budgetFailure(found);
      const problem = areSet(run) ? backends.unknownPrice(run, role) : null;
      return problem === null ? null : failureOf('budget_exceeded', problem);
    },
    parking: async (run, role) => {
      if (!areSet(run)) return null;
      const chosen = backends.now(run, role);
      const found = isFree(chosen) ? null : await used(run);
      return found === null ? null : parkedByBudget(found, chosen.backend, now());
    },
    leftUsd: async (run) => (areSet(run) ? leftOf(limitsOf(run), await spent(run)) : null),
    withRun: (options, maxCostUsd, goesOn) =>
      maxCostUsd === undefined && settings().budgets.runUsd === null
        ? options
        : {
            ...options,
            run: { id: goesOn ?? `${new Date(now()).toISOString()}-${randomUUID()}`, maxCostUsd },
          },
  };
};

/** Lets tasks that wait for a budget go on, where it now has room. */
export const freeBudgets = async (
  { live, now }: { readonly live: Pick<KeptTasks, 'all'>; readonly now: () => number },
  budgets: Pick<Budgets, 'used'>,
): Promise<void> => {
  for (const [, { actor }] of [...live.all()]) {
    const { parked, options } = actor.getSnapshot().context;
    if (parked?.budget === undefined || (await budgets.used(options)) !== null) continue;
    const event = { type: 'limit.ended', backend: 'budget', at: now() } as const;
    if (actor.getSnapshot().can(event)) actor.send(event);
  }
};
