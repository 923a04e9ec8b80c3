import type { Failure } from '../../machines/task.ts';

/** `kind` is the fact by which machines and tests tell failures of a model apart. */
export const modelFailure = (
  kind: string,
  message: string,
  retryable: boolean,
  facts: Readonly<Record<string, unknown>> = {},
): Failure => ({ code: 'model_failed', message, facts: { kind, ...facts }, retryable });

export const cancelledCall: Failure = modelFailure('cancelled', 'the call was cancelled', false);
