import { stripVTControlCharacters } from 'node:util';
import { APIConnectionError, APIError } from 'openai';
import { z } from 'zod';
import { isJsonObject, textIn, textOrEmpty } from '../../../machines/json.ts';
import { dayMs, hourMs, minuteMs } from '../../../machines/milliseconds.ts';
import type { Failure } from '../../../machines/task.ts';
import { refusesImages } from '../images.ts';
import { modelFailure } from '../port.ts';
import type { Trip } from '../watchdog.ts';

const minPauseMs = 500;

/** The Retry-After header in ms; an unreadable or past value counts as the shortest pause. */
export const retryAfterMs = (headers: Headers | undefined, now: number): number | null => {
  const given = headers?.get('retry-after');
  if (given == null) return null;
  const date = /GMT\s*$/.test(given) ? Date.parse(given) - now : Number.NaN;
  const pause = /^\s*\d+(\.\d+)?\s*$/.test(given) ? Number(given) * 1000 : date;
  return Number.isFinite(pause) ? Math.max(minPauseMs, pause) : minPauseMs;
};

/** ChatGPT plans tell the end of a limit in the body only. */
const bodySchema = z.looseObject({ resets_in_seconds: z.number().nonnegative() });
const resetsInMs = (body: unknown): number | null => {
  const { data } = bodySchema.safeParse(body);
  return data === undefined ? null : data.resets_in_seconds * 1_000;
};

const unitMs: Readonly<Record<string, number>> = {
  d: dayMs,
  h: hourMs,
  m: minuteMs,
  s: 1_000,
  ms: 1,
};
const tooMany = 429;

const httpStatus = ({ status, code }: APIError): number | null => {
  const given = status ?? (typeof code === 'object' ? Number.NaN : Number(code));
  return Number.isInteger(given) && given >= 400 && given < 600 ? given : null;
};

const wordsOf = ({ error }: APIError): string => textIn(error, 'message') ?? '';

const durationPattern = /(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[dhms]))+/i.source;

/** `7m12s`, `34.07s` */
const durationMs = (text: string | null | undefined): number | null => {
  if (text == null || !new RegExp(`^${durationPattern}$`, 'i').test(text)) return null;
  const parts = text.toLowerCase().matchAll(/(?<![\d.])([\d.]+)(ms|[dhms])/g);
  const pause = [...parts].reduce(
    (sum, [, count, unit = '']) => sum + Number(count) * (unitMs[unit] ?? 0),
    0,
  );
  return Math.max(minPauseMs, Math.round(pause));
};

/** Google: `details` with a `RetryInfo`. */
const retryInfoMs = (error: unknown): number | null => {
  const details = isJsonObject(error) ? error['details'] : null;
  const info: unknown = Array.isArray(details)
    ? details.find((detail) => textIn(detail, '@type')?.endsWith('google.rpc.RetryInfo'))
    : null;
  return durationMs(textIn(info, 'retryDelay'));
};

/** OpenAI, Groq, Gemini: `Please try again in 7m12s`, `Please retry in 34.07s`. */
const inWordsMs = (words: string): number | null =>
  durationMs(
    new RegExp(`\\b(?:try again|retry) in (${durationPattern})(?!\\w)`, 'i').exec(words)?.[1],
  );

const headersIn = ({ headers, error }: APIError): readonly (readonly [string, string])[] => {
  const metadata = isJsonObject(error) ? error['metadata'] : null;
  const given = isJsonObject(metadata) ? metadata['headers'] : null;
  const more = Object.entries(isJsonObject(given) ? given : {});
  return [
    ...(headers?.entries() ?? []),
    ...more.map(([name, value]) => [name, textOrEmpty(value)] as const),
  ];
};

/** OpenRouter sends the end of a limit in epoch ms, Anthropic several as RFC 3339: the last counts. */
const untilResetMs = (error: APIError, now: number): number | null => {
  const last = headersIn(error).reduce((latest, [name, value]) => {
    const isEpoch = /^x-ratelimit-reset$/i.test(name) && /^\d{13}$/.test(value);
    const isDate = /^anthropic-ratelimit-[\w-]+-reset$/i.test(name);
    return Math.max(latest, isEpoch ? Number(value) : isDate ? Date.parse(value) || 0 : 0);
  }, 0);
  return last === 0 ? null : Math.max(minPauseMs, last - now);
};

const limitMs = (error: APIError, now: number): number | null =>
  httpStatus(error) === tooMany || error.code === 'rate_limit_exceeded'
    ? (retryInfoMs(error.error) ?? inWordsMs(wordsOf(error)) ?? untilResetMs(error, now))
    : null;

/** The pause that the provider asks for (ms): in a header, in the body, or in words. */
const wantedPauseMs = (error: APIError, now: number): number | null =>
  retryAfterMs(error.headers, now) ?? resetsInMs(error.error) ?? limitMs(error, now);

/**
 * `credentials`, `proxy` and `network` (which may pass): no token of a cloud, or no way through the
 * proxy, so the provider got no call.
 */
type WireFault = 'redirect' | 'content_type' | 'flood' | 'credentials' | 'proxy' | 'network';

export class WireError extends Error {
  override readonly name = 'WireError';
  readonly kind: WireFault;

  constructor(kind: WireFault, message: string) {
    super(message);
    this.kind = kind;
  }
}

const retryableStatus = (status: number): boolean =>
  [408, 409, 429].includes(status) || status >= 500;

/** Groq's code for a tool call of the model; another answer may have a better one. */
const badCall = 'tool_use_failed';

/** Values of `code` or `type` that no retry cures. */
const lastingFaults: ReadonlyMap<unknown, string> = new Map([
  ['content_filter', "the provider's content filter refused the request"],
]);

const quotaUsedUp = 'the quota of the provider account is used up';
/** Codes of OpenAI, Anthropic and the ChatGPT plans for a quota that is used up. */
const quotaFaults: ReadonlySet<unknown> = new Set([
  'insufficient_quota',
  'billing_error',
  'billing_hard_limit_reached',
  'usage_limit_reached',
]);
/** OpenRouter, DeepSeek and others. */
const paymentRequired = 402;

/** Codes of OpenAI and llama.cpp for a conversation that is longer than the context. */
const overflows: ReadonlySet<unknown> = new Set([
  'context_length_exceeded',
  'exceed_context_size_error',
]);

/**
 * vLLM, Ollama and servers behind LiteLLM have no code for it. We match the message of a refused
 * request only, and only to choose between compaction and failure.
 */
const tooLong =
  /maximum (context|prompt) length|token count[^.]{0,40}exceeds|too many tokens|`max_new_tokens` must be|context (length|window|size)[^.]{0,40}exceed|exceed[^.]{0,40}context (length|window|size)|prompt is too long|input (is )?too long|ContextWindowExceeded/i;

const isContextOverflow = (
  said: readonly unknown[],
  status: number | null,
  message: string,
): boolean =>
  said.some((word) => overflows.has(word)) ||
  ([400, 413, 422].includes(status ?? 0) && tooLong.test(message));

/**
 * Errors inside a stream have no HTTP status; these codes mean that the request itself is at fault.
 */
const requestFaults: ReadonlySet<unknown> = new Set([
  'invalid_request_error',
  'authentication_error',
  'permission_error',
  'not_found_error',
  'invalid_api_key',
  'model_not_found',
  'invalid_prompt',
]);

/** Errors of AWS for credentials that are wrong or too old. */
const refusedCredentials: ReadonlySet<unknown> = new Set([
  'UnrecognizedClientException',
  'ExpiredTokenException',
  'InvalidSignatureException',
  'IncompleteSignatureException',
  'MissingAuthenticationTokenException',
]);

const aboutKeys = /(?<![a-z])keys?(?![a-z])|apikey|authenticat/i;
/** What a key that is not refused may have no access to. */
const aboutAccess = /\b(model|country|region|territory)\b/i;

const isKeyRefused = (said: readonly unknown[], status: number | null, words: string): boolean =>
  status === 401 ||
  said.some((word) => refusedCredentials.has(word)) ||
  (status === 403 &&
    [...said, words].some((text) => aboutKeys.test(textOrEmpty(text))) &&
    !aboutAccess.test(words));

const httpMessage = (status: number, words: string): string =>
  `the provider answered ${words.startsWith(`${status}`) ? words : `${status} ${words}`}`;

const withWords = (text: string, words: string): string =>
  words === '' ? text : `${text}: ${words}`;

const providerFailure = (error: APIError, now: number): Failure => {
  const status = httpStatus(error);
  const said = [error.code, error.type];
  const words = wordsOf(error);
  const after = wantedPauseMs(error, now);
  const facts = {
    status: status ?? undefined,
    retry_after_ms: after ?? undefined,
    ...(typeof error.code === 'string' && /^[a-z_]{1,64}$/.test(error.code)
      ? { provider_code: error.code }
      : {}),
  };
  if (status === paymentRequired || said.some((word) => quotaFaults.has(word)))
    return modelFailure('insufficient_quota', withWords(quotaUsedUp, words), false, facts);
  const kind = said.find((word) => lastingFaults.has(word));
  if (kind != null) return modelFailure(kind, lastingFaults.get(kind) ?? kind, false, facts);
  if (said.includes(badCall))
    return modelFailure(
      'malformed_call',
      'the model wrote a tool call that the provider could not read',
      true,
      facts,
    );
  if (isContextOverflow(said, status, words))
    return modelFailure(
      'context_overflow',
      "the conversation is longer than the model's context",
      false,
      facts,
    );
  if (isKeyRefused(said, status, words))
    return modelFailure(
      'auth',
      withWords(`the provider refused the key (HTTP ${status})`, words),
      false,
      facts,
    );
  const retryable =
    status === null ? !said.some((word) => requestFaults.has(word)) : retryableStatus(status);
  return error.status === undefined
    ? modelFailure(
        'stream_error',
        withWords('the provider reported an error', words),
        retryable,
        facts,
      )
    : modelFailure('http', httpMessage(error.status, words), retryable, facts);
};

const causes = (error: unknown): readonly Error[] =>
  error instanceof Error ? [error, ...causes(error.cause)] : [];

const wireErrorIn = (error: unknown): WireError | undefined =>
  causes(error).find((each) => each instanceof WireError);

/**
 * Node's codes for a rejected certificate
 * (https://nodejs.org/api/tls.html#x509-certificate-error-codes).
 */
const certificateCodes: ReadonlySet<unknown> = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

const certificateCodeIn = (error: unknown): unknown =>
  causes(error)
    .map((each) => ('code' in each ? each.code : undefined))
    .find((code) => certificateCodes.has(code));

const refusedCertificate = (code: unknown): Failure =>
  modelFailure(
    'certificate',
    `the certificate of the provider is not accepted (${code}); to trust your own authority, name its file in NODE_EXTRA_CA_CERTS`,
    false,
    { certificate: code },
  );

interface CallFacts {
  readonly now: number;
  /** Some providers repeat them in their errors. */
  readonly secrets: readonly string[];
  readonly sent: boolean;
  /** Without user and password: `http://127.0.0.1:11434`. */
  readonly origin: string;
}

const networkFaults: Readonly<Record<string, (origin: string) => string>> = {
  ECONNREFUSED: (origin) =>
    `the provider at ${origin} refused the connection: nothing listens there`,
  ENOTFOUND: (origin) => `the provider cannot be reached: there is no host of ${origin}`,
  EAI_AGAIN: (origin) => `the provider cannot be reached: the name of ${origin} has no answer now`,
  ECONNRESET: (origin) => `the provider at ${origin} cut the connection before it answered`,
  EPIPE: (origin) => `the provider at ${origin} cut the connection before it answered`,
  UND_ERR_SOCKET: (origin) => `the provider at ${origin} cut the connection before it answered`,
};

const unreachable = (error: unknown, origin: string): Failure => {
  const code = causes(error)
    .map((each) => ('code' in each ? String(each.code) : ''))
    .find((each) => each in networkFaults);
  const says = networkFaults[code ?? '']?.(origin);
  return modelFailure('network', says ?? `the provider at ${origin} cannot be reached`, true, {
    address: origin,
    network_code: code,
  });
};

const classifyError = (error: unknown, { now, sent, origin }: CallFacts): Failure => {
  const wire = wireErrorIn(error);
  if (wire !== undefined)
    return modelFailure(
      wire.kind === 'credentials' ? 'auth' : wire.kind,
      wire.message,
      wire.kind === 'content_type' || wire.kind === 'network',
    );
  if (!sent)
    return modelFailure(
      'setup',
      'the request could not be sent; check the key, the headers of the provider and OPENAI_CUSTOM_HEADERS',
      false,
    );
  const certificate = certificateCodeIn(error);
  if (certificate !== undefined) return refusedCertificate(certificate);
  if (error instanceof APIConnectionError) return unreachable(error, origin);
  if (error instanceof APIError) return providerFailure(error, now);
  if (error instanceof SyntaxError)
    return modelFailure('malformed', 'a part of the answer was not JSON', true);
  return modelFailure('network', 'the connection to the provider broke in mid-answer', true);
};

const minSecretLength = 8;
const messageLength = 300;

const plainLine = (text: string): string =>
  stripVTControlCharacters(text)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();

/** A shorter key is the placeholder of a local server, and may be part of any word. */
const withoutSecret = (text: string, secret: string): string =>
  secret.trim().length < minSecretLength ? text : text.replaceAll(secret.trim(), '[secret]');

/** Also removes secrets and control characters from the message. */
export const callFailure = (error: unknown, call: CallFacts): Failure => {
  const failure = classifyError(error, call);
  const safe = call.secrets.reduce(withoutSecret, plainLine(failure.message));
  return { ...failure, message: safe.slice(0, messageLength) };
};

const tripMessages: Readonly<Record<Trip, string>> = {
  connect: 'the provider did not answer',
  first_byte: 'the provider sent headers and then nothing',
  idle: 'the provider fell silent in mid-answer',
  progress: 'the provider kept the connection open and sent nothing of the answer',
  turn: 'the answer took too long',
};

export const tripFailure = (trip: Trip, ms: number): Failure =>
  modelFailure(`timeout_${trip}`, `${tripMessages[trip]} for ${ms / 1000} s`, true, {
    timeout_ms: ms,
  });

export const incompleteAnswer = (chunks: number): Failure =>
  chunks === 0
    ? modelFailure('empty', 'the answer was empty', true)
    : modelFailure('cut_off', 'the answer ended before it was finished', true);

export const unknownFinish = (reason: string): Failure =>
  modelFailure('unknown_finish', 'the provider ended the answer for an unknown reason', true, {
    finish_reason: reason.slice(0, 32),
  });

/** A model or a server without vision has no code of its own: only its words say it. */
export const isNoEndpoint = (failure: Failure): boolean =>
  [404, 405, 501].some((status) => status === failure.facts['status']) &&
  failure.facts['provider_code'] !== 'model_not_found' &&
  !refusesImages(failure);

export const filteredAnswer: Failure = modelFailure(
  'content_filter',
  "the provider's content filter stopped the answer",
  false,
);
