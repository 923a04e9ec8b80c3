import type { Spent } from '../../machines/agent/agent-context.ts';
import { dayMs, hourMs, minuteMs } from '../../machines/milliseconds.ts';
import type { Usage } from '../../machines/task.ts';
import { type AssistantEvent, noTokens, type TokensUsed } from './port.ts';

/** The words of codex and claude for a used-up quota. */
const limitWords =
  /usage limit|(hit|reached) your [\w -]{0,24}limit|hit your (spend cap|team's shared budget)|(session|weekly|5-hour|hourly|opus|sonnet) limit reached|quota exceeded|out of (extra usage|usage|credits)|credit balance is too low|insufficient_quota/i;

/** By the first letter of the unit. */
const unitMs: Readonly<Record<string, number>> = {
  d: dayMs,
  h: hourMs,
  m: minuteMs,
  s: 1_000,
};
const pausePart =
  /(\d{1,6}(?:\.\d{1,6})?) ?(d(?:ays?)?|h(?:ours?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])/gi;
const pausePattern = new RegExp(
  `(?:try again|retry|resets?) (?:in|after) ((?:${pausePart.source},? ?)+)`,
  'i',
);

/** `try again in 3 days 4 hours 28 minutes`, `try again in 1m7.5s` */
const afterPause = (message: string, now: number): number | null => {
  const words = pausePattern.exec(message)?.[1];
  if (words === undefined) return null;
  const parts = [...words.matchAll(pausePart)];
  return parts.reduce(
    (at, [, count, unit = '']) => at + Number(count) * (unitMs[unit.charAt(0).toLowerCase()] ?? 0),
    now,
  );
};

/** `usage limit reached|1749924000` */
const atEpoch = (message: string): number | null => {
  const seconds = /limit reached\|(\d{9,11})\b/.exec(message)?.[1];
  return seconds === undefined ? null : Number(seconds) * 1_000;
};

const isoZone = 'UTC';
/** Offset of a time zone from UTC (ms). @throws for an unknown zone */
const zoneAheadMs = (timeZone: string, at: number): number => {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    dateStyle: 'short',
    timeStyle: 'medium',
  }).format(at);
  const shown = Date.parse(`${parts.replace(',', '')} ${isoZone}`);
  return shown - Math.floor(at / 1_000) * 1_000;
};

/** A time of day as it is now in the zone: `3pm`, `7:50pm`, `Oct 28th, 2026 3:05 PM`. */
const clockPattern =
  /(?:try again at|resets?(?: at| on)?) (?:([A-Z][a-z]{2})[a-z]* (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}),?)?(?: at)? )?(\d{1,2})(?::(\d{2}))? ?([ap])m(?: \(([A-Za-z_+\-/0-9]{1,64})\))?/i;

const atClock = (message: string, now: number): number | null => {
  const match = clockPattern.exec(message);
  if (match === null) return null;
  const [, month, day, year, hour, minute = '00', half = 'a', zone] = match;
  const timeZone = zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const ahead = zoneAheadMs(timeZone, now);
  const there = new Date(now + ahead);
  const hours = (Number(hour) % 12) + (half.toLowerCase() === 'p' ? 12 : 0);
  const inYear = (years: number): number => {
    const date =
      month === undefined
        ? there
        : new Date(
            Date.parse(`${month} ${day} ${year ?? there.getUTCFullYear() + years} ${isoZone}`),
          );
    const clock = `${String(hours).padStart(2, '0')}:${minute}`;
    return Date.parse(`${date.toISOString().slice(0, 10)}T${clock}:00Z`) - ahead;
  };
  const at = inYear(0);
  // A time of day that is past means tomorrow, a date that is long past next year.
  if (month === undefined) return at < now ? at + dayMs : at;
  return at < now - dayMs ? inYear(1) : at;
};

const orNull = (read: () => number | null): number | null => {
  try {
    const at = read();
    return at === null || !Number.isFinite(at) ? null : at;
  } catch {
    return null;
  }
};

/** The end of a limit as a message names it (epoch ms), or null. */
export const limitEndIn = (message: string, now: number): number | null =>
  atEpoch(message) ?? orNull(() => afterPause(message, now)) ?? orNull(() => atClock(message, now));

/** True for a provider that refuses calls for a while, other than for a used-up quota. */
export const isRateLimit = (message: string): boolean =>
  /\b429\b|rate[ _-]?limit|too many requests/i.test(message);

/**
 * The end of the usage limit that a message tells of (epoch ms); `resetsAt` is null when it does
 * not say when. Null for another message.
 */
export const usageLimitIn = (
  message: string,
  now: number,
): { readonly resetsAt: number | null } | null =>
  limitWords.test(message) ? { resetsAt: limitEndIn(message, now) } : null;

interface UsageMeter {
  add(event: AssistantEvent): void;
  isDue(): boolean;
  take(): Spent;
}

interface UsageMeterOptions {
  readonly before: Usage;
  /** Used when the assistant reports no cost; null when the price is unknown. */
  readonly costOf: (used: TokensUsed) => number | null;
}

const combineTokens = (
  one: TokensUsed,
  other: TokensUsed,
  join: (a: number, b: number) => number,
): TokensUsed => ({
  inputTokens: join(one.inputTokens, other.inputTokens),
  outputTokens: join(one.outputTokens, other.outputTokens),
  cachedTokens: join(one.cachedTokens, other.cachedTokens),
  cacheWriteTokens: join(one.cacheWriteTokens ?? 0, other.cacheWriteTokens ?? 0),
});
const sum = (a: number, b: number): number => a + b;
/** Never negative: usage that was counted stays counted. */
const less = (a: number, b: number): number => Math.max(0, a - b);

/**
 * Counts the model calls that the assistant names; else all events between two batches of tool
 * results are one call.
 */
const createCallCount = () => {
  const named = new Map<string, TokensUsed>();
  const running = new Set<string>();
  let unnamed = 0;
  let isNew = true;

  const countUnnamed = (): void => {
    if (isNew) unnamed += 1;
    isNew = false;
  };
  return {
    add: (event: AssistantEvent): void => {
      if (event.type === 'called') named.set(event.id, event.used);
      if (event.type === 'text' || event.type === 'tool_started') countUnnamed();
      if (event.type === 'tool_started') running.add(event.callId);
      if (event.type === 'tool_ended' && running.delete(event.callId)) isNew = running.size === 0;
    },
    count: (): number => (named.size > 0 ? named.size : unnamed),
    used: (): TokensUsed =>
      [...named.values()].reduce((all, used) => combineTokens(all, used, sum), noTokens),
  };
};

export const createUsageMeter = ({ before, costOf }: UsageMeterOptions): UsageMeter => {
  const calls = createCallCount();
  const counted: TokensUsed = {
    inputTokens: before.input_tokens,
    outputTokens: before.output_tokens,
    cachedTokens: before.cached_tokens,
    cacheWriteTokens: before.cache_write_tokens,
  };
  let said: TokensUsed = noTokens;
  let newUsd: number | null = null;
  let soFar: Extract<AssistantEvent, { type: 'cost_so_far' }> | null = null;
  let tools = 0;
  let taken: Spent = { modelCalls: 0, toolCalls: 0, ...noTokens, costUsd: null };

  /** A cost of the session covers the usage before this run, too; a cost of the run does not. */
  const usdOfRun = ({ usd, inputTokens }: NonNullable<typeof soFar>, used: TokensUsed): number => {
    const earlier = before.cost_usd ?? 0;
    const isOfSession =
      inputTokens === null ? usd >= earlier : inputTokens >= counted.inputTokens + used.inputTokens;
    return isOfSession ? less(usd, earlier) : usd;
  };
  const now = (): Spent => {
    const used = combineTokens(said, calls.used(), Math.max);
    const saidUsd = newUsd ?? (soFar === null ? null : usdOfRun(soFar, used));
    return {
      modelCalls: calls.count(),
      toolCalls: tools,
      ...used,
      costUsd: saidUsd ?? costOf(used),
    };
  };

  return {
    add: (event) => {
      calls.add(event);
      if (event.type === 'tool_started') tools += 1;
      if (event.type === 'used') {
        const used = event.since === 'run' ? event.used : combineTokens(event.used, counted, less);
        said = combineTokens(said, used, Math.max);
      }
      if (event.type === 'cost') newUsd = (newUsd ?? 0) + event.usd;
      if (event.type === 'cost_so_far') soFar = event;
    },
    isDue: () => {
      const { modelCalls, inputTokens, outputTokens } = now();
      return (
        modelCalls > taken.modelCalls ||
        inputTokens > taken.inputTokens ||
        outputTokens > taken.outputTokens
      );
    },
    take: () => {
      const all = now();
      const spent: Spent = {
        ...combineTokens(all, taken, less),
        modelCalls: all.modelCalls - taken.modelCalls,
        toolCalls: all.toolCalls - taken.toolCalls,
        costUsd: all.costUsd === null ? null : less(all.costUsd, taken.costUsd ?? 0),
      };
      taken = {
        ...all,
        ...combineTokens(all, taken, Math.max),
        costUsd: all.costUsd ?? taken.costUsd,
      };
      return spent;
    },
  };
};
