/** `8 s`, `4 min`, `2 h`, `3 d`. */
export const age = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
};

/** `120 ms`, `8.4 s`, `4 min 2 s`, `1 h 5 min`. */
export const duration = (ms: number): string => {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
};

export const money = (usd: number): string =>
  usd > 0 && usd < 0.01 ? '< $0.01' : `$${usd.toFixed(2)}`;

/** `cached 94 %` of the tokens in; empty where none were cached. */
export const cachedWords = (of: {
  readonly input_tokens: number;
  readonly cached_tokens: number;
}): string =>
  of.cached_tokens > 0 && of.input_tokens > 0
    ? `cached ${Math.round((of.cached_tokens / of.input_tokens) * 100)} %`
    : '';

/** `318`, `58.3k`, `1.2M`. */
export const count = (value: number): string => {
  if (value < 1_000) return `${value}`;
  if (value < 100_000) return `${(value / 1_000).toFixed(1)}k`;
  return value < 1_000_000 ? `${Math.round(value / 1_000)}k` : `${(value / 1_000_000).toFixed(1)}M`;
};

const two = (value: number): string => `${value}`.padStart(2, '0');

/** `40 s`, `1 min`, `1:20 min`, `1:30 h`, `2 d`: for marks, which differ by less than `age` says. */
export const markAge = (ms: number): string => {
  const seconds = Math.round(ms / 1_000);
  const [small, large, unit] = seconds < 3_600 ? [1, 60, 'min'] : [60, 3_600, 'h'];
  const rest = Math.floor((seconds % large) / small);
  if (seconds < 60 || seconds >= 86_400 || rest === 0) return age(ms);
  return `${Math.floor(seconds / large)}:${two(rest)} ${unit}`;
};

/** The time of day where the reader is. */
export const clock = (at: number): string => {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
};
export const clockWithSeconds = (at: number): string =>
  `${clock(at)}:${two(new Date(at).getSeconds())}`;

/** `23 Nov 2026, 05:01:12`, where the reader is. */
export const dateAndTime = (at: number): string => {
  const day = new Date(at).toLocaleDateString('en-GB', { dateStyle: 'medium' });
  return `${day}, ${clockWithSeconds(at)}`;
};

const dayMs = 86_400_000;
const dayOf = (at: number): string =>
  new Date(at).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/** `Today`, `Yesterday`, `23 Nov 2026`, where the reader is. */
export const dayWord = (at: number, now: number): string => {
  const day = dayOf(at);
  if (day === dayOf(now)) return 'Today';
  return day === dayOf(now - dayMs) ? 'Yesterday' : day;
};

export const numbered = (value: number, one: string, many = `${one}s`): string =>
  `${value.toLocaleString('en')} ${value === 1 ? one : many}`;

/** One line, without control and bidi characters. */
export const oneLine = (text: string): string =>
  text.replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim();

const causeAtMost = 240;
/** The end of a message often says how it ended. */
const causeEnd = 70;

/** The first line of a message, without the middle of a long one. */
export const causeIn = (message: string): string => {
  const line = message.trimStart().split('\n', 1)[0] ?? '';
  return line.length <= causeAtMost
    ? line
    : `${line.slice(0, causeAtMost - causeEnd)} … ${line.slice(-causeEnd)}`;
};
