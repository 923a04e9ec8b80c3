import type { APIError } from 'openai';
import { z } from 'zod';
import { dayMs, hourMs, minuteMs } from '../../machines/milliseconds.ts';

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

/** OpenAI, Groq, Gemini: `Please try again in 7m12s`, `Please retry in 34.07s`. */
const inWordsMs = ({ status, code, message }: APIError): number | null => {
  if (status !== tooMany && code !== 'rate_limit_exceeded') return null;
  const words = /\b(?:try again|retry) in ((?:\d{1,9}(?:\.\d{1,9})?(?:ms|[dhms]))+)(?!\w)/i.exec(
    message,
  )?.[1];
  if (words === undefined) return null;
  const parts = words.toLowerCase().matchAll(/(?<![\d.])([\d.]+)(ms|[dhms])/g);
  const pause = [...parts].reduce(
    (sum, [, count, unit = '']) => sum + Number(count) * (unitMs[unit] ?? 0),
    0,
  );
  return Math.max(minPauseMs, Math.round(pause));
};

/** The pause that the provider asks for (ms): in a header, in the body, or in words. */
export const wantedPauseMs = (error: APIError, now: number): number | null =>
  retryAfterMs(error.headers, now) ?? resetsInMs(error.error) ?? inWordsMs(error);
