import { z } from 'zod';
import type { AttemptUsage, Entry, NewEntry, UsageDay, UsageSums } from '../port.ts';
import { type Database, type Row, together, type Work } from './rows.ts';

const savedUsageSchema = z.looseObject({
  model_calls: z.number(),
  tool_calls: z.number(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  cached_tokens: z.number(),
  cache_write_tokens: z.number().optional(),
  cost_usd: z.number().optional(),
});
const usageEndSchema = z.looseObject({
  role: z.string(),
  execution_seconds: z.number(),
  usage: savedUsageSchema,
});
/** A failed attempt that is followed by another one has no last frame. */
const retrySchema = z.looseObject({ attempt_ended: usageEndSchema });
const retryMark = '"attempt_ended":';

const endStatuses: Readonly<Record<string, string>> = {
  completed: 'complete',
  failed: 'failed',
  cancelled: 'cancelled',
};

interface CountedEnd {
  readonly status: string;
  readonly data: z.infer<typeof usageEndSchema>;
}

/** Entries of version 2.1 do not name the role, and count nothing. */
const endOfEntry = ({ type, data }: NewEntry): CountedEnd | null => {
  const status = endStatuses[type];
  if (status !== undefined) {
    const parsed = usageEndSchema.safeParse(JSON.parse(data));
    return parsed.success ? { status, data: parsed.data } : null;
  }
  if (type !== 'log' || !data.includes(retryMark)) return null;
  const parsed = retrySchema.safeParse(JSON.parse(data));
  return parsed.success ? { status: 'failed', data: parsed.data.attempt_ended } : null;
};

const sumsOf = (row: Row): UsageSums => ({
  seconds: Number(row['seconds']),
  model_calls: Number(row['model_calls']),
  tool_calls: Number(row['tool_calls']),
  input_tokens: Number(row['input_tokens']),
  output_tokens: Number(row['output_tokens']),
  cached_tokens: Number(row['cached_tokens']),
  cache_write_tokens: Number(row['cache_write_tokens']) || undefined,
  cost_usd: row['cost_usd'] === null ? undefined : Number(row['cost_usd']),
});
const textColumn = (row: Row, column: string): string => String(row[column] ?? '');

const keyOf = ({ taskId, attempt }: Pick<NewEntry, 'taskId' | 'attempt'>): string =>
  `${taskId}#${attempt}`;

/** The keys of attempts whose end is known. */
type EndedAttempts = Set<string>;

export interface UsageRows {
  /** What `add` goes by, for entries that it may get. */
  open(entries: readonly NewEntry[]): Work<EndedAttempts>;
  /**
   * Inside the transaction of the entries; `owner` commits them.
   * @returns times (s) of the attempts that ended with them
   */
  add(
    entries: readonly Entry[],
    owner: string | null,
    ended: EndedAttempts,
  ): Work<readonly number[]>;
  /** Per day (UTC) and role, the oldest first; from the given day on. */
  days(since: string): Work<readonly UsageDay[]>;
  attempts(taskId: string): Work<readonly AttemptUsage[]>;
}

const sumColumns =
  'complete failed cancelled seconds model_calls tool_calls input_tokens output_tokens cached_tokens cache_write_tokens'.split(
    ' ',
  );

/** Usage by attempt, and sums by day and role, so that a usage query never scans all tasks. */
export const createUsageRows = (db: Database): UsageRows => {
  const addAttempt = db.prepare(
    `insert into attempts (task_id, attempt, role, status, ended_at, seconds, model_calls,
       tool_calls, input_tokens, output_tokens, cached_tokens, cache_write_tokens, cost_usd, owner)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const hasEnded = db.prepare('select 1 as one from attempts where task_id = ? and attempt = ?');
  const addDay = db.prepare(
    `insert into usage_days (day, role, attempts, complete, failed, cancelled, seconds, model_calls,
       tool_calls, input_tokens, output_tokens, cached_tokens, cache_write_tokens, cost_usd)
     values (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (day, role) do update set attempts = usage_days.attempts + 1,
       ${sumColumns.map((column) => `${column} = usage_days.${column} + excluded.${column}`).join(', ')},
       cost_usd = case when usage_days.cost_usd is null then excluded.cost_usd
         else usage_days.cost_usd + coalesce(excluded.cost_usd, 0) end`,
  );
  const days = db.prepare('select * from usage_days where day >= ? order by day, role');
  const attempts = db.prepare('select * from attempts where task_id = ? order by attempt');

  const addOne = function* (
    entry: Entry,
    { status, data }: CountedEnd,
    owner: string | null,
  ): Work<void> {
    const { role, execution_seconds: seconds, usage } = data;
    const sums = [
      seconds,
      usage.model_calls,
      usage.tool_calls,
      usage.input_tokens,
      usage.output_tokens,
      usage.cached_tokens,
      usage.cache_write_tokens ?? 0,
      usage.cost_usd ?? null,
    ];
    yield* addAttempt.send(entry.taskId, entry.attempt, role, status, entry.at, ...sums, owner);
    const counts = [status === 'complete', status === 'failed', status === 'cancelled'];
    const day = new Date(entry.at).toISOString().slice(0, 10);
    yield* addDay.send(day, role, ...counts.map(Number), ...sums);
  };
  const wasEnded = function* ({ taskId, attempt }: NewEntry): Work<readonly string[]> {
    const row = yield* hasEnded.first(taskId, attempt);
    return row === null ? [] : [keyOf({ taskId, attempt })];
  };

  return {
    *open(entries) {
      const ends = entries.filter((entry) => entry.attempt > 0 && endOfEntry(entry) !== null);
      return new Set((yield* together(ends.map(wasEnded))).flat());
    },
    *add(entries, owner, ended) {
      const runs: number[] = [];
      for (const entry of entries) {
        const end = entry.attempt === 0 ? null : endOfEntry(entry);
        // A task that is closed or cancelled between two attempts ends with the number of the last one.
        if (end === null || ended.has(keyOf(entry))) continue;
        ended.add(keyOf(entry));
        yield* addOne(entry, end, owner);
        runs.push(end.data.execution_seconds);
      }
      return runs;
    },
    *days(since) {
      return (yield* days.all(since)).map((row) => ({
        day: textColumn(row, 'day'),
        role: textColumn(row, 'role'),
        attempts: Number(row['attempts']),
        complete: Number(row['complete']),
        failed: Number(row['failed']),
        cancelled: Number(row['cancelled']),
        ...sumsOf(row),
      }));
    },
    *attempts(taskId) {
      return (yield* attempts.all(taskId)).map((row) => ({
        attempt: Number(row['attempt']),
        role: textColumn(row, 'role'),
        status: textColumn(row, 'status'),
        endedAt: Number(row['ended_at']),
        owner: row['owner'] == null ? null : textColumn(row, 'owner'),
        ...sumsOf(row),
      }));
    },
  };
};
