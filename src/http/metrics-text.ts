import type { SlotUse } from '../actors/engine/queries/explain.ts';
import {
  type Histogram,
  histogramOf,
  type JournalDuration,
  type ProcessDuration,
} from '../actors/store/durations.ts';
import type { Counters } from '../actors/store/port.ts';

/** Times in seconds. */
export const metricsDocument = (counters: Counters, load: SlotUse, uptimeSeconds: number) => ({
  tasks_spawned: counters.spawned,
  tasks_completed: counters.completed,
  tasks_failed: counters.failed,
  tasks_cancelled: counters.cancelled,
  tasks_in_progress: load.running,
  queue_depth: load.waiting,
  api_calls_total: counters.callsTotal,
  api_calls_failed: counters.callsFailed,
  average_execution_seconds:
    counters.executed === 0 ? 0 : counters.executionSeconds / counters.executed,
  input_tokens_total: counters.inputTokens,
  output_tokens_total: counters.outputTokens,
  cached_tokens_total: counters.cachedTokens,
  cache_write_tokens_total: counters.cacheWriteTokens,
  uptime_seconds: uptimeSeconds,
});
export type MetricsDocument = ReturnType<typeof metricsDocument>;
/** Prometheus computes the mean from a histogram. */
type Name = Exclude<keyof MetricsDocument, 'average_execution_seconds'>;

const described: Readonly<
  Record<Name, readonly [metric: string, type: 'counter' | 'gauge', help: string]>
> = {
  tasks_spawned: ['tasks_spawned_total', 'counter', 'Attempts whose agent began.'],
  tasks_completed: ['tasks_completed_total', 'counter', 'Tasks that became complete.'],
  tasks_failed: ['tasks_failed_total', 'counter', 'Tasks that failed.'],
  tasks_cancelled: ['tasks_cancelled_total', 'counter', 'Tasks that were cancelled.'],
  tasks_in_progress: ['tasks_in_progress', 'gauge', 'Tasks that hold a slot.'],
  queue_depth: ['queue_depth', 'gauge', 'Tasks that wait for a slot.'],
  api_calls_total: ['api_calls_total', 'counter', 'Calls of the language model.'],
  api_calls_failed: [
    'api_calls_failed_total',
    'counter',
    'Calls of the language model that failed.',
  ],
  input_tokens_total: ['input_tokens_total', 'counter', 'Tokens sent to the language model.'],
  output_tokens_total: [
    'output_tokens_total',
    'counter',
    'Tokens received from the language model.',
  ],
  cached_tokens_total: [
    'cached_tokens_total',
    'counter',
    'Tokens sent that the provider had cached.',
  ],
  cache_write_tokens_total: [
    'cache_write_tokens_total',
    'counter',
    'Tokens sent that the provider wrote to its cache.',
  ],
  uptime_seconds: ['uptime_seconds', 'gauge', 'Time since the server started.'],
};

type HistogramName = JournalDuration | ProcessDuration;

const histogramHelp: Readonly<Record<HistogramName, string>> = {
  queue_wait: 'Time that a task waited for a slot.',
  run: 'Time of an attempt, from its start to its end.',
  model_call: 'Time of a call of the language model, also of one that failed.',
  tool_call: 'Time of a tool call of the built-in loop.',
  tracker_call: 'Time until the tracker answered, since this process started.',
  store_commit: 'Time until the store had committed, since this process started.',
};
const histogramNames = Object.keys(histogramHelp) as HistogramName[];

const head = (metric: string, type: string, help: string): string =>
  `# HELP ${metric} ${help}\n# TYPE ${metric} ${type}\n`;

const histogramText = (name: HistogramName, histogram: Histogram): string => {
  const metric = `agent_${name}_duration_seconds`;
  let count = 0;
  const buckets = histogram.counts.map((own, index) => {
    count += own;
    return `${metric}_bucket{le="${histogram.bounds[index] ?? '+Inf'}"} ${count}\n`;
  });
  return `${head(metric, 'histogram', histogramHelp[name])}${buckets.join('')}${metric}_sum ${histogram.sumSeconds}\n${metric}_count ${count}\n`;
};

export type Histograms = Readonly<Record<HistogramName, Histogram>>;

export const histogramsFrom = (
  { durations }: Pick<Counters, 'durations'>,
  ofProcess: Readonly<Record<ProcessDuration, Histogram>>,
): Histograms => ({
  queue_wait: histogramOf(durations, 'queue_wait'),
  run: histogramOf(durations, 'run'),
  model_call: histogramOf(durations, 'model_call'),
  tool_call: histogramOf(durations, 'tool_call'),
  ...ofProcess,
});

/** The text format of Prometheus 0.0.4. */
export const metricsText = (document: MetricsDocument, histograms: Histograms): string => {
  const single = (Object.keys(described) as Name[]).map((name) => {
    const [metric, type, help] = described[name];
    return `${head(`agent_${metric}`, type, help)}agent_${metric} ${document[name]}\n`;
  });
  const inBuckets = histogramNames.map((name) => histogramText(name, histograms[name]));
  return [...single, ...inBuckets].join('');
};
