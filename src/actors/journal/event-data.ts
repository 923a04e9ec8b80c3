import type { EventObject } from 'xstate';
import { isServiceError } from '../../machines/errors.ts';

interface ErrorData {
  readonly name: string;
  readonly message: string;
  /** Only our own errors have one; the machine reads it. */
  readonly code?: string;
  readonly facts?: unknown;
}

const asData = (error: unknown): ErrorData => {
  if (isServiceError(error))
    return { name: error.name, message: error.message, code: error.code, facts: error.facts };
  return error instanceof Error
    ? { name: error.name, message: error.message }
    : { name: 'Error', message: String(error) };
};

/** Adds the time and turns an error into data, so that the machine sees what the journal holds. */
export const stampEvent = (event: EventObject, now: () => number): EventObject => {
  const stamped: EventObject & { readonly error?: unknown } =
    'at' in event ? event : { ...event, at: now() };
  return 'error' in stamped
    ? ({ ...stamped, error: asData(stamped.error) } as EventObject)
    : stamped;
};
