import { type Refusal, refusal } from '../errors.ts';
import type { TaskContext } from './task-context.ts';
import { hasParkedAttempt, willRetry } from './task-selectors.ts';

type WithContext = { readonly context: TaskContext };

/** In the order in which `explain` shows them. */
export const runGuardNames = [
  'taskExists',
  'dependenciesComplete',
  'heldByNobodyElse',
  'projectCanBeUsed',
  'modelCanBeCalled',
  'withinBudget',
  'hasAttemptsLeft',
] as const;
export type RunGuard = (typeof runGuardNames)[number];

/**
 * The guards between a request and an attempt. They read the context alone, so `explain` evaluates
 * them too.
 */
export const runGuards = {
  taskExists: ({ context: { finding } }: WithContext): boolean => finding?.exists === true,
  dependenciesComplete: ({ context: { finding } }: WithContext): boolean =>
    finding?.unmet.length === 0,
  heldByNobodyElse: ({ context: { finding } }: WithContext): boolean => finding?.holder === null,
  projectCanBeUsed: ({ context: { finding } }: WithContext): boolean =>
    finding?.projectProblem == null,
  modelCanBeCalled: ({ context: { finding } }: WithContext): boolean =>
    finding?.missingCredential === null,
  /** Else the task is parked, not refused. */
  withinBudget: ({ context: { finding } }: WithContext): boolean => finding?.usedBudget == null,
  hasAttemptsLeft: ({ context }: WithContext): boolean => willRetry(context),
} satisfies Record<RunGuard, (params: WithContext) => boolean>;

/** A request that may wait for unmet dependencies is not refused because of them. */
export const waitsForDependencies = ({ context }: WithContext): boolean =>
  context.options.when === 'ready' || hasParkedAttempt(context);

/** What a guard that does not hold refuses a request with. */
export const runRefusals = {
  taskExists: ({ context }: WithContext) => refusal('task_not_found', { task_id: context.taskId }),
  dependenciesComplete: ({ context }: WithContext) =>
    refusal('dependencies_unmet', {
      task_id: context.taskId,
      unmet: context.finding?.unmet ?? [],
    }),
  heldByNobodyElse: ({ context }: WithContext) =>
    refusal('tracker_conflict', {
      task_id: context.taskId,
      holder: context.finding?.holder ?? 'somebody',
    }),
  projectCanBeUsed: ({ context: { finding } }: WithContext) =>
    refusal(
      'project_refused',
      finding?.projectProblem ?? { path: '', problem: 'cannot be used', remedy: 'try again' },
    ),
  modelCanBeCalled: ({ context: { finding } }: WithContext) =>
    refusal('credential_missing', {
      variable: finding?.missingCredential ?? 'OPENAI_API_KEY',
      problem: finding?.assistantProblem,
      remedy: finding?.credentialRemedy,
    }),
};

/** Null when the guards let a run begin, or wait. */
export const refusesRun = (given: WithContext): Refusal | null => {
  if (!runGuards.taskExists(given)) return runRefusals.taskExists(given);
  if (!runGuards.dependenciesComplete(given) && !waitsForDependencies(given))
    return runRefusals.dependenciesComplete(given);
  if (!runGuards.heldByNobodyElse(given)) return runRefusals.heldByNobodyElse(given);
  if (!runGuards.projectCanBeUsed(given)) return runRefusals.projectCanBeUsed(given);
  return runGuards.modelCanBeCalled(given) ? null : runRefusals.modelCanBeCalled(given);
};
