import { z } from 'zod';
import { isDurationRow, rowsOfDuration, rowsOfEntry, timedTypes } from '../durations.ts';
import type { Counters, Entry } from '../port.ts';
import { createRowInsert, type Database, type Work } from './rows.ts';

import { rowsPerRead } from './stored-entry.ts';

const zeroCounters: Counters = {
  spawned: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  callsTotal: 0,
  callsFailed: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  executed: 0,
  executionSeconds: 0,
  durations: {},
};

const tokensSchema = z.looseObject({
  input_tokens: z.number().default(0),
  output_tokens: z.number().default(0),
  cached_tokens: z.number().default(0),
  cache_write_tokens: z.number().default(0),
});
const callSchema = tokensSchema.extend({ ok: z.boolean() });
/** Assistants report usage instead of single calls. */
const assistantUsageSchema = tokensSchema.extend({
  assistant: z.string().optional(),
  model_calls: z.number().default(0),
});
const withTokens = (counters: Counters, added: z.infer<typeof tokensSchema>): Counters => ({
  ...counters,
  inputTokens: counters.inputTokens + added.input_tokens,
  outputTokens: counters.outputTokens + added.output_tokens,
  cachedTokens: counters.cachedTokens + added.cached_tokens,
  cacheWriteTokens: counters.cacheWriteTokens + added.cache_write_tokens,
});
const attemptEndSchema = z.looseObject({ execution_seconds: z.number().default(0) });

const folds: Readonly<Record<string, (counters: Counters, data: unknown) => Counters>> = {
  api_call_complete: (counters, data) => {
    const call = callSchema.parse(data);
    return {
      ...withTokens(counters, call),
      callsTotal: counters.callsTotal + 1,
      callsFailed: counters.callsFailed + (call.ok ? 0 : 1),
    };
  },
  usage: (counters, data) => {
    const used = assistantUsageSchema.parse(data);
    if (used.assistant === undefined) return counters;
    return {
      ...withTokens(counters, used),
      callsTotal: counters.callsTotal + used.model_calls,
    };
  },
  completed: (counters, data) => {
    const { execution_seconds: seconds } = attemptEndSchema.parse(data);
    return {
      ...counters,
      completed: counters.completed + 1,
      executed: counters.executed + (seconds > 0 ? 1 : 0),
      executionSeconds: counters.executionSeconds + seconds,
    };
  },
  failed: (counters) => ({ ...counters, failed: counters.failed + 1 }),
  cancelled: (counters) => ({ ...counters, cancelled: counters.cancelled + 1 }),
};

const agentBegins = '{"machine":"agent","value":"preparing",';

type Counted = Pick<Entry, 'type' | 'data'>;

const countDuration = (counters: Counters, entry: Counted): Counters => {
  const rows = rowsOfEntry(entry);
  if (rows.length === 0) return counters;
  const durations = { ...counters.durations };
  for (const [row, value] of rows) durations[row] = (durations[row] ?? 0) + value;
  return { ...counters, durations };
};

const countEntry = (before: Counters, entry: Counted): Counters => {
  const { type, data } = entry;
  const counters = countDuration(before, entry);
  // Most entries are snapshots, and large; the start of the text is enough.
  if (type === 'snapshot')
    return data.startsWith(agentBegins) ? { ...counters, spawned: counters.spawned + 1 } : counters;
  const fold = folds[type];
  return fold === undefined ? counters : fold(counters, JSON.parse(data));
};

interface CounterRows {
  /**
   * Inside a transaction, before its entries are written. A database of version 2.1 is counted
   * once.
   */
  begin(): Work<void>;
  /** `runs`: times (s) of the attempts that ended with them. */
  add(entries: readonly Entry[], runs: readonly number[]): Work<void>;
  read(): Work<Counters>;
}

export const createCounterRows = (db: Database): CounterRows => {
  const any = db.prepare('select 1 as one from counters limit 1');
  const all = db.prepare('select name, value from counters');
  const addRows = createRowInsert(db, {
    into: 'counters (name, value)',
    onConflict: 'on conflict (name) do update set value = counters.value + excluded.value',
  });
  const countedTypes = new Set([...Object.keys(folds), ...timedTypes]);
  const rowsOf = ({ durations, ...sums }: Counters) => Object.entries({ ...sums, ...durations });
  const counted = db.prepare(
    `select seq, type, data from journal where seq > ? and (
       type in (${[...countedTypes].map((type) => `'${type}'`).join(', ')})
       or (type = 'snapshot' and data like '${agentBegins}%'))
     order by seq limit ?`,
  );

  const countJournal = function* (): Work<Counters> {
    let counters = zeroCounters;
    for (let after = 0; ; ) {
      const rows = yield* counted.all(after, rowsPerRead);
      for (const { type, data } of rows)
        counters = countEntry(counters, { type: String(type), data: String(data) });
      const last = rows.at(-1);
      if (last === undefined) return counters;
      after = Number(last['seq']);
    }
  };
  // A transaction that adds the first rows may be undone, so only a later one knows of them.
  let isCounted = false;
  const begin = function* (): Work<void> {
    if (isCounted) return;
    isCounted = (yield* any.first()) !== null;
    if (isCounted) return;
    yield* addRows(rowsOf(yield* countJournal()));
  };
  return {
    begin,
    *add(entries, runs) {
      const counted = entries.reduce(countEntry, zeroCounters);
      if (counted === zeroCounters && runs.length === 0) return;
      // A statement takes each row once.
      const sums = new Map(rowsOf(counted));
      for (const seconds of runs)
        for (const [name, value] of rowsOfDuration('run', seconds))
          sums.set(name, (sums.get(name) ?? 0) + value);
      yield* addRows([...sums].filter(([, value]) => value !== 0));
    },
    *read() {
      if ((yield* any.first()) === null) return yield* countJournal();
      const rows = (yield* all.all()).map(
        ({ name, value }) => [String(name), Number(value)] as const,
      );
      return {
        ...zeroCounters,
        ...Object.fromEntries(rows.filter(([name]) => !isDurationRow(name))),
        durations: Object.fromEntries(rows.filter(([name]) => isDurationRow(name))),
      };
    },
  };
};
