import { z } from 'zod';
import type { Entry, Store } from '../store/port.ts';
import type { Journal } from './journal.ts';

/** What the journal says about the work so far; recounted from it at every start. */
export interface Counters {
  readonly spawned: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly callsTotal: number;
  readonly callsFailed: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Of the tasks that completed, those that an agent worked on, and the sum of their times. */
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
/** Of an assistant, whose calls are not frames of their own. */
const assistantUsageSchema = z.looseObject({
  assistant: z.string().optional(),
  model_calls: z.number().default(0),
  input_tokens: z.number().default(0),
  output_tokens: z.number().default(0),
});
const endSchema = z.looseObject({ execution_seconds: z.number().default(0) });

const folds: Readonly<Record<string, (tally: Counters, data: unknown) => Counters>> = {
  api_call_complete: (tally, data) => {
    const { ok, input_tokens, output_tokens } = callSchema.parse(data);
    return {
      ...tally,
      callsTotal: tally.callsTotal + 1,
      callsFailed: tally.callsFailed + (ok ? 0 : 1),
      inputTokens: tally.inputTokens + input_tokens,
      outputTokens: tally.outputTokens + output_tokens,
    };
  },
  usage: (tally, data) => {
    const { assistant, model_calls, input_tokens, output_tokens } = assistantUsageSchema.parse(data);
    if (assistant === undefined) return tally;
    return {
      ...tally,
      callsTotal: tally.callsTotal + model_calls,
      inputTokens: tally.inputTokens + input_tokens,
      outputTokens: tally.outputTokens + output_tokens,
    };
  },
  completed: (tally, data) => {
    const { execution_seconds: seconds } = endSchema.parse(data);
    return {
      ...tally,
      completed: tally.completed + 1,
      executed: tally.executed + (seconds > 0 ? 1 : 0),
      executionSeconds: tally.executionSeconds + seconds,
    };
  },
  failed: (tally) => ({ ...tally, failed: tally.failed + 1 }),
  cancelled: (tally) => ({ ...tally, cancelled: tally.cancelled + 1 }),
};

const agentBegins = '{"machine":"agent","value":"preparing",';

/** One step of the pure fold. */
export const count = (tally: Counters, { type, data }: Pick<Entry, 'type' | 'data'>): Counters => {
  // Most entries are snapshots, and large: the first words of one say enough.
  if (type === 'snapshot') return data.startsWith(agentBegins) ? { ...tally, spawned: tally.spawned + 1 } : tally;
  const fold = folds[type];
  return fold === undefined ? tally : fold(tally, JSON.parse(data));
};

const page = 1_000;

/** Counts what stands in the journal, then every commit. */
export const createCounters = (store: Store, journal: Journal): (() => Counters) => {
  let tally = zeroCounters;
  for (let after = 0; ; ) {
    const entries = store.read({ after, limit: page });
    tally = entries.reduce(count, tally);
    const last = entries.at(-1);
    if (last === undefined) break;
    after = last.seq;
  }
  journal.onCommit((entries) => {
    tally = entries.reduce(count, tally);
  });
  return () => tally;
};
