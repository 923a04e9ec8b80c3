import type { Journal } from '../journal/journal.ts';
import { createAttemptSpans } from './attempt-spans.ts';
import { createSpanExporter, type SpanExporterOptions } from './export-spans.ts';

export interface TraceOptions extends SpanExporterOptions {
  readonly journal: Pick<Journal, 'onCommit'>;
  /** Tells equal task ids of two projects apart. */
  readonly project: string;
}

/** Sends a trace of each attempt, made of what the journal committed. */
export const traceJournal = (options: TraceOptions): { stop(): Promise<void> } => {
  const exporter = createSpanExporter(options);
  const spansOf = createAttemptSpans(options.project);
  const leave = options.journal.onCommit((entries) => exporter.add(entries.flatMap(spansOf)));
  return {
    stop: async () => {
      leave();
      await exporter.stop();
    },
  };
};
