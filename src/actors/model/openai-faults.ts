import { APIConnectionError, APIError } from 'openai';
import type { Failure } from '../../machines/task.ts';
import type { Trip } from './watchdog.ts';

/** What the fetch around the SDK refuses by itself. */
export class WireError extends Error {
  override readonly name = 'WireError';
  readonly kind: 'redirect' | 'content_type';

  constructor(kind: 'redirect' | 'content_type', message: string) {
    super(message);
    this.kind = kind;
  }
}

const failed = (
  kind: string,
  message: string,
  retryable: boolean,
  facts: Readonly<Record<string, unknown>> = {},
): Failure => ({ code: 'model_failed', message, facts: { kind, ...facts }, retryable });

const minRetryAfterMs = 500;

/** The provider's wish for a pause, in ms; one that cannot be read or lies in the past counts as the least pause. */
export const retryAfterMs = (headers: Headers | undefined, now: number): number | null => {
  const given = headers?.get('retry-after');
  if (given == null) return null;
  const date = /GMT\s*$/.test(given) ? Date.parse(given) - now : Number.NaN;
  const pause = /^\s*\d+(\.\d+)?\s*$/.test(given) ? Number(given) * 1000 : date;
  return Number.isFinite(pause) ? Math.max(minRetryAfterMs, pause) : minRetryAfterMs;
};

const retryableStatus = (status: number): boolean => [408, 409, 429].includes(status) || status >= 500;

const codes: Readonly<Record<string, string>> = {
  insufficient_quota: 'the quota of the provider account is used up',
  context_length_exceeded: "the conversation is longer than the model's context",
};

const byStatus = (error: APIError, now: number): Failure => {
  const status = error.status ?? 0;
  const known = codes[error.code ?? ''];
  const after = retryAfterMs(error.headers, now);
  const facts = { status, ...(after === null ? {} : { retry_after_ms: after }) };
  if (known !== undefined) return failed(error.code ?? '', known, false, facts);
  if (status === 401 || status === 403)
    return failed('auth', `the provider refused the key (HTTP ${status})`, false, facts);
  if (status === 0) return failed('stream_error', `the provider reported an error: ${error.message}`, true, facts);
  return failed('http', `the provider answered ${error.message}`, retryableStatus(status), facts);
};

const wireErrorIn = (error: unknown): WireError | null => {
  for (let at: unknown = error; at instanceof Error; at = at.cause) if (at instanceof WireError) return at;
  return null;
};

/** Why a call that threw has failed, and whether another may succeed (facts/security-reliability 7). */
export const failureOf = (error: unknown, now: number): Failure => {
  const wire = wireErrorIn(error);
  if (wire !== null) return failed(wire.kind, wire.message, wire.kind === 'content_type');
  if (error instanceof APIConnectionError) return failed('network', 'the provider cannot be reached', true);
  if (error instanceof APIError) return byStatus(error, now);
  if (error instanceof SyntaxError) return failed('malformed', 'a part of the answer was not JSON', true);
  return failed('network', 'the connection to the provider broke in mid-answer', true);
};

const tripped: Readonly<Record<Trip, string>> = {
  connect: 'the provider did not answer',
  first_byte: 'the provider sent headers and then nothing',
  idle: 'the provider fell silent in mid-answer',
  progress: 'the provider kept the connection open and sent nothing of the answer',
  turn: 'the answer took too long',
};

export const tripFailure = (trip: Trip, ms: number): Failure =>
  failed(`timeout_${trip}`, `${tripped[trip]} for ${ms / 1000} s`, true, { timeout_ms: ms });

export const incomplete = (chunks: number): Failure =>
  chunks === 0
    ? failed('empty', 'the answer was empty', true)
    : failed('cut_off', 'the answer ended before it was finished', true);

export const filtered: Failure = failed('content_filter', "the provider's content filter stopped the answer", false);
export const cancelled: Failure = failed('cancelled', 'the call was cancelled', false);
