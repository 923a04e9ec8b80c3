import { dayMs } from '../milliseconds.ts';
import { type Failure, failureOf, type Parking } from '../task.ts';
import type { Spent } from './agent-context.ts';

/** What a person allows to be spent, in USD; null: no limit. */
export interface BudgetLimits {
  readonly runUsd: number | null;
  readonly dayUsd: number | null;
  readonly monthUsd: number | null;
}

/** What was spent, in USD: by one run, and by the whole store on this day and in this month (UTC). */
export interface Spending {
  readonly runUsd: number;
  readonly dayUsd: number;
  readonly monthUsd: number;
}

export const budgetNames = ['run', 'month', 'day'] as const;
export type BudgetName = (typeof budgetNames)[number];

/** A budget that is used up. */
export interface UsedBudget {
  readonly budget: BudgetName;
  readonly limitUsd: number;
  readonly spentUsd: number;
  /** Epoch ms; null: only a person ends it. */
  readonly endsAt: number | null;
}

const endOf = (budget: BudgetName, at: number): number | null => {
  const now = new Date(at);
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  if (budget === 'run') return null;
  return budget === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1);
};

/** What is left of the budget that has least; null without one. */
export const leftOf = (limits: BudgetLimits, spent: Spending): number | null => {
  const left = budgetNames.flatMap((name) => {
    const limit = limits[`${name}Usd`];
    return limit === null ? [] : [limit - spent[`${name}Usd`]];
  });
  return left.length === 0 ? null : Math.min(...left);
};

/**
 * The one decision about budgets: whether a further model call may begin. Of several that are used
 * up, the one that lasts longest. Null: it may.
 */
export const usedBudget = (
  limits: BudgetLimits,
  spent: Spending,
  at: number,
): UsedBudget | null => {
  for (const budget of budgetNames) {
    const [limitUsd, spentUsd] = [limits[`${budget}Usd`], spent[`${budget}Usd`]];
    if (limitUsd !== null && spentUsd >= limitUsd - 1e-9)
      return { budget, limitUsd, spentUsd, endsAt: endOf(budget, at) };
  }
  return null;
};

const usd = (amount: number): string => String(Math.round(amount * 10_000) / 10_000);

/** `budget.day_usd: 5.02 of 5 USD are spent` */
const describeBudget = ({ budget, limitUsd, spentUsd }: UsedBudget): string =>
  `budget.${budget}_usd: ${usd(spentUsd)} of ${usd(limitUsd)} USD are spent`;

/** A task waits for a budget as it does for a limit of a provider (ADR 0070, ADR 0138). */
export const parkedByBudget = (used: UsedBudget, backend: string, at: number): Parking => ({
  since: at,
  until: used.endsAt ?? at + 7 * dayMs,
  reason: describeBudget(used),
  backend,
  budget: used.budget,
});

export const budgetFailure = (used: UsedBudget): Failure =>
  failureOf('budget_exceeded', describeBudget(used), { used_budget: used });

/** The budget of a failure that began no call, or null. */
export const budgetIn = (failure: Failure | null): UsedBudget | null =>
  (failure?.facts['used_budget'] as UsedBudget | undefined) ?? null;

/** Of a call that did not begin. */
export const nothingSpent: Spent = {
  modelCalls: 0,
  toolCalls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  costUsd: null,
};
