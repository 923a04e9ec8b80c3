import type { TaskContext } from './task-context.ts';
import { willRetry } from './task-selectors.ts';

type Now = { readonly context: TaskContext };

/** The guards between a request and an attempt. They read the context alone, so `explain` evaluates them too. */
export const runGuards = {
  taskExists: ({ context: { finding } }: Now): boolean => finding?.exists === true,
  dependenciesComplete: ({ context: { finding } }: Now): boolean => finding?.unmet.length === 0,
  heldByNobodyElse: ({ context: { finding } }: Now): boolean => finding?.holder === null,
  modelCanBeCalled: ({ context: { finding } }: Now): boolean => finding?.missingCredential === null,
  hasAttemptsLeft: ({ context }: Now): boolean => willRetry(context),
};
export type RunGuard = keyof typeof runGuards;
