import type { AgentContext } from './agent/agent-context.ts';
import { longestModelPauseMs, pauseAfterFailure } from './agent/agent-rules.ts';
import { budgetIn, parkedByBudget } from './agent/budget.ts';
import { dayMs, hourMs } from './milliseconds.ts';
import type { Failure, Parking } from './task.ts';

/** A provider may ask for any time; then we look again at least this often. */
export const longestParkMs = 7 * dayMs;
/** The pause after a used-up quota whose provider does not say when it is refilled. */
export const unknownParkMs = hourMs;
export const shortestParkMs = 1_000;
/** An attempt that is parked more often without one successful call in between fails. */
export const parksAtMost = 100;

/** Kinds of failure that say: the quota is used up. */
const quotaKinds: ReadonlySet<unknown> = new Set(['insufficient_quota', 'usage_limit']);

/** True for a used-up quota, and for a pause that is too long to keep a slot. */
export const isProviderLimit = (failure: Failure | null, context: AgentContext): boolean =>
  failure !== null &&
  failure.code === 'model_failed' &&
  (quotaKinds.has(failure.facts['kind']) ||
    (failure.retryable && pauseAfterFailure(failure, context) > longestModelPauseMs));

/** At a budget no call was made, so the number of times has no limit. */
export const mayPark = (failure: Failure | null, context: AgentContext): boolean =>
  budgetIn(failure) !== null ||
  (isProviderLimit(failure, context) &&
    context.limits.onQuota !== 'fail' &&
    (context.parks ?? 0) < parksAtMost);

export const parkingFor = (
  failure: Failure,
  { backend, limits }: AgentContext,
  at: number,
): Parking => {
  const used = budgetIn(failure);
  if (used !== null) return parkedByBudget(used, backend, at);
  const { facts, message } = failure;
  const wanted = facts['retry_after_ms'];
  const pause = typeof wanted === 'number' ? wanted : unknownParkMs;
  return {
    since: at,
    until: at + Math.round(Math.min(Math.max(pause, shortestParkMs), longestParkMs)),
    reason: `provider limit: ${message}`,
    backend: limits.limitedBy ?? backend,
  };
};

/** Another attempt would meet the same limit: the user chose to fail. */
export const failureAtEnd = (failure: Failure | null, context: AgentContext): Failure | null =>
  failure !== null && isProviderLimit(failure, context)
    ? { ...failure, retryable: false }
    : failure;
