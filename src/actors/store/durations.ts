import { z } from 'zod';
import type { Entry } from './port.ts';

/** Upper bounds (seconds) of the buckets of each duration that the journal tells. */
export const journalBounds = {
  queue_wait: [0.1, 1, 5, 15, 60, 300, 900, 3_600, 14_400],
  run: [1, 5, 15, 60, 300, 900, 1_800, 3_600, 7_200],
  model_call: [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  tool_call: [0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 900],
} as const;
export type JournalDuration = keyof typeof journalBounds;

interface Observation {
  readonly name: JournalDuration;
  readonly seconds: number;
}

const callDurationSchema = z.looseObject({ duration_ms: z.number() });
const waitSchema = z.looseObject({ waited_seconds: z.number() });

const callSeconds = (data: unknown): number | undefined => {
  const { data: call } = callDurationSchema.safeParse(data);
  return call === undefined ? undefined : call.duration_ms / 1_000;
};
const waitedSeconds = (data: unknown): number | undefined =>
  waitSchema.safeParse(data).data?.waited_seconds;

const readers: Readonly<
  Record<string, readonly [JournalDuration, (data: unknown) => number | undefined]>
> = {
  status_update: ['queue_wait', waitedSeconds],
  api_call_complete: ['model_call', callSeconds],
  tool_end: ['tool_call', callSeconds],
};
export const timedTypes: readonly string[] = Object.keys(readers);

const observationOf = ({ type, data }: Pick<Entry, 'type' | 'data'>): Observation | null => {
  const reader = readers[type];
  if (reader === undefined) return null;
  const [name, read] = reader;
  const seconds = read(JSON.parse(data));
  return seconds === undefined ? null : { name, seconds };
};

/** Index of the bucket of a duration; the last one has no bound. */
export const bucketOf = (bounds: readonly number[], seconds: number): number => {
  const index = bounds.findIndex((bound) => seconds <= bound);
  return index === -1 ? bounds.length : index;
};

const rowName = (name: JournalDuration, part: number | 'sum'): string => `${name}/${part}`;
export const isDurationRow = (name: string): boolean => name.includes('/');

type Rows = readonly (readonly [row: string, value: number])[];

/** One duration, as it is added to the rows `model_call/2` (a bucket) and `model_call/sum`. */
export const rowsOfDuration = (name: JournalDuration, seconds: number): Rows => [
  [rowName(name, bucketOf(journalBounds[name], seconds)), 1],
  [rowName(name, 'sum'), seconds],
];

export const rowsOfEntry = (entry: Pick<Entry, 'type' | 'data'>): Rows => {
  const observation = observationOf(entry);
  return observation === null ? [] : rowsOfDuration(observation.name, observation.seconds);
};

/** Durations in buckets; `counts` has one more item than `bounds`, and is not cumulative. */
export interface Histogram {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sumSeconds: number;
}

export const histogramOf = (
  rows: Readonly<Record<string, number>>,
  name: JournalDuration,
): Histogram => {
  const bounds = journalBounds[name];
  return {
    bounds,
    counts: [...bounds, Infinity].map((_, index) => rows[rowName(name, index)] ?? 0),
    sumSeconds: rows[rowName(name, 'sum')] ?? 0,
  };
};

/** Upper bounds (seconds) of the buckets of each duration that only this process knows. */
const processBounds = {
  tracker_call: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30],
  store_commit: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5],
} as const;
export type ProcessDuration = keyof typeof processBounds;

interface ProcessDurations {
  observe(name: ProcessDuration, seconds: number): void;
  read(): Readonly<Record<ProcessDuration, Histogram>>;
}

/** They begin at zero with the process. */
export const createProcessDurations = (): ProcessDurations => {
  const empty = (name: ProcessDuration) => ({
    bounds: processBounds[name],
    counts: [...processBounds[name], Infinity].map(() => 0),
    sumSeconds: 0,
  });
  const all = { tracker_call: empty('tracker_call'), store_commit: empty('store_commit') };
  return {
    observe: (name, seconds) => {
      const own = all[name];
      const index = bucketOf(own.bounds, seconds);
      own.counts[index] = (own.counts[index] ?? 0) + 1;
      own.sumSeconds += seconds;
    },
    read: () => structuredClone(all),
  };
};

/**
 * The same object; each call of a method that `isTimed` names is measured until it has answered.
 */
export const timed = <Port extends object>(
  port: Port,
  isTimed: (method: string) => boolean,
  observe: (seconds: number) => void,
): Port =>
  new Proxy(port, {
    get: (target, key) => {
      const method: unknown = Reflect.get(target, key);
      if (typeof method !== 'function' || typeof key !== 'string' || !isTimed(key)) return method;
      return (...given: unknown[]): unknown => {
        const startedAt = performance.now();
        const done = (): void => observe((performance.now() - startedAt) / 1_000);
        const answer: unknown = Reflect.apply(method, target, given);
        if (answer instanceof Promise) void answer.then(done, done);
        else done();
        return answer;
      };
    },
  });
