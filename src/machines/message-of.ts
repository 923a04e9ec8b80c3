import type { Failure } from './task.ts';
/** The message of an error; a saved error is a plain object. */
export const messageOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'message' in error
    ? String(error.message)
    : String(error);

/**
 * The code of a failure with what happened. An agent that gave up, or that ended without a result,
 * is named by its message alone: its model did not fail.
 */
export const describeFailure = ({
  code,
  message,
  facts,
}: Pick<Failure, 'message' | 'facts'> & { readonly code: string }): string =>
  facts['gave_up'] === true || facts['no_result'] === true ? message : `${code}: ${message}`;
