import { z } from 'zod';
import type { Entry, Store } from '../store/port.ts';
import { entriesOf } from './entries-of.ts';
import type { Journal } from './journal.ts';

export interface Counters {
  readonly spawned: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly callsTotal: number;
  readonly callsFailed: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Completed tasks that an agent worked on, and the sum of their times. */
  readonly executed: number;
  readonly executionSeconds: number;
}

const zeroCounters: Counters = {
  spawned: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  callsTotal: 0,
  callsFailed: 0,
  inputTokens: 0,
  outputTokens: 0,
  executed: 0,
  executionSeconds: 0,
};

const callSchema = z.looseObject({
  ok: z.boolean(),
  input_tokens: z.number().default(0),
  output_tokens: z.number().default(0),
});
/** Assistants report usage instead of single calls. */
const assistantUsageSchema = z.looseObject({
  assistant: z.string().optional(),
  model_calls: z.number().default(0),
  input_tokens: z.number().default(0),
  output_tokens: z.number().default(0),
});
const endSchema = z.looseObject({ execution_seconds: z.number().default(0) });

const folds: Readonly<Record<string, (counters: Counters, data: unknown) => Counters>> = {
  api_call_complete: (counters, data) => {
    const { ok, input_tokens, output_tokens } = callSchema.parse(data);
    return {
      ...counters,
      callsTotal: counters.callsTotal + 1,
      callsFailed: counters.callsFailed + (ok ? 0 : 1),
      inputTokens: counters.inputTokens + input_tokens,
      outputTokens: counters.outputTokens + output_tokens,
    };
  },
  usage: (counters, data) => {
    const { assistant, model_calls, input_tokens, output_tokens } = assistantUsageSchema.parse(data);
    if (assistant === undefined) return counters;
    return {
      ...counters,
      callsTotal: counters.callsTotal + model_calls,
      inputTokens: counters.inputTokens + input_tokens,
      outputTokens: counters.outputTokens + output_tokens,
    };
  },
  completed: (counters, data) => {
    const { execution_seconds: seconds } = endSchema.parse(data);
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

export const count = (counters: Counters, { type, data }: Pick<Entry, 'type' | 'data'>): Counters => {
  // Most entries are snapshots, and large; the start of the text is enough.
  if (type === 'snapshot')
    return data.startsWith(agentBegins) ? { ...counters, spawned: counters.spawned + 1 } : counters;
  const fold = folds[type];
  return fold === undefined ? counters : fold(counters, JSON.parse(data));
};

export const createCounters = (store: Store, journal: Journal): (() => Counters) => {
  let counters = zeroCounters;
  for (const entry of entriesOf(store)) counters = count(counters, entry);
  journal.onCommit((entries) => {
    counters = entries.reduce(count, counters);
  });
  return () => counters;
};
