import { UsageError } from '../words/usage-error.ts';

const unitSeconds: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: 3_600,
  d: 86_400,
  w: 604_800,
};

/** Of `30d`, `12h`, `45m`. @throws UsageError */
export const secondsOf = (flag: string, text: string): number => {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  const seconds = Number(count) * (unitSeconds[unit] ?? Number.NaN);
  if (seconds > 0) return seconds;
  throw new UsageError(`${flag} takes a number with s, m, h, d or w, such as 30d`);
};

/** A day, a time, or how long ago: `2026-11-22`, `2026-11-22T10:00:00Z`, `7d`. @throws UsageError */
export const timeOf = (flag: string, text: string, now: number): string => {
  const at = Date.parse(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(at)) return new Date(at).toISOString();
  return new Date(now - secondsOf(flag, text) * 1_000).toISOString();
};
