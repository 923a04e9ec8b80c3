import type { TaskContext } from './task-context.ts';
import { willRetry } from './task-selectors.ts';

type WithContext = { readonly context: TaskContext };

/** In the order in which `explain` shows them. */
export const runGuardNames = [
  'taskExists',
  'dependenciesComplete',
  'heldByNobodyElse',
  'modelCanBeCalled',
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
  modelCanBeCalled: ({ context: { finding } }: WithContext): boolean =>
    finding?.missingCredential === null,
  hasAttemptsLeft: ({ context }: WithContext): boolean => willRetry(context),
} satisfies Record<RunGuard, (params: WithContext) => boolean>;
