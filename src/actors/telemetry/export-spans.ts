import { createHash } from 'node:crypto';
import { messageOf } from '../../machines/message-of.ts';

export interface Span {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: 'internal' | 'client';
  /** Epoch ms. */
  readonly startAt: number;
  readonly endAt: number;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  /** Why it failed, as one word; null when it did not. */
  readonly error: string | null;
}

const hex = (length: number, ...parts: readonly (string | number)[]): string =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, length);

/**
 * Ids follow from the task, so that a server that restarts goes on with the trace of an attempt.
 */
export interface TraceIds {
  readonly traceId: string;
  readonly rootId: string;
  idOf(part: string, seq: number): string;
}

/** `project` tells equal task ids of two projects apart. */
export const traceIds = (project: string, taskId: string, attempt: number): TraceIds => ({
  traceId: hex(32, project, taskId, attempt),
  rootId: hex(16, project, taskId, attempt, 'attempt'),
  idOf: (part, seq) => hex(16, project, taskId, attempt, part, seq),
});

type OtlpValue = string | number;

const anyValue = (value: OtlpValue): object => {
  if (typeof value === 'string') return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};

const attributesOf = (given: Readonly<Record<string, OtlpValue | undefined>>): readonly object[] =>
  Object.entries(given).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: anyValue(value) }],
  );

const nanoseconds = (ms: number): string => `${Math.round(ms * 1_000)}000`;

const spanKinds = { internal: 1, client: 3 } as const;
const failedStatusCode = 2;

const spanJson = ({ parentSpanId, startAt, endAt, kind, error, attributes, ...ids }: Span) => ({
  ...ids,
  ...(parentSpanId === null ? {} : { parentSpanId }),
  kind: spanKinds[kind],
  startTimeUnixNano: nanoseconds(startAt),
  endTimeUnixNano: nanoseconds(endAt),
  attributes: attributesOf({ ...attributes, 'error.type': error ?? undefined }),
  status: error === null ? {} : { code: failedStatusCode, message: error },
});

interface Resource {
  readonly serviceName: string;
  readonly version: string;
}

/** `ExportTraceServiceRequest` as OTLP/HTTP sends it in JSON. */
const exportRequest = (spans: readonly Span[], { serviceName, version }: Resource): object => ({
  resourceSpans: [
    {
      resource: {
        attributes: attributesOf({ 'service.name': serviceName, 'service.version': version }),
      },
      scopeSpans: [{ scope: { name: 'agent-task-server', version }, spans: spans.map(spanJson) }],
    },
  ],
});

export interface Collector {
  /** With the path `/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface SpanExporterOptions {
  readonly collector: Collector;
  readonly resource: Resource;
  readonly redact: (text: string) => string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Sends spans in the background. No caller waits for the collector, and none gets its errors. */
interface SpanExporter {
  add(spans: readonly Span[]): void;
  /** Sends what waits, for at most 2 s. */
  stop(): Promise<void>;
}

const spansWaitingAtMost = 2_048;
const perRequest = 512;
const gatherSpansMs = 1_000;
const longestExportPauseMs = 30_000;
const requestMs = 10_000;
const stopExportMs = 2_000;
const retried: readonly number[] = [429, 502, 503, 504];

type ExportResult = 'sent' | { readonly problem: string; readonly mayRetry: boolean };

const sendSpans = async (
  { url, headers }: Collector,
  body: string,
  signal: AbortSignal,
): Promise<ExportResult> => {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      redirect: 'error',
      signal,
    });
    await response.body?.cancel();
    if (response.ok) return 'sent';
    const { status } = response;
    return { problem: `the collector answered ${status}`, mayRetry: retried.includes(status) };
  } catch (error) {
    const { cause } = error as { readonly cause?: unknown };
    return { problem: messageOf(cause ?? error), mayRetry: true };
  }
};

export const createSpanExporter = ({
  collector,
  resource,
  redact,
  log,
}: SpanExporterOptions): SpanExporter => {
  const stopping = new AbortController();
  let waiting: readonly Span[] = [];
  let lost = 0;
  let failures = 0;
  let timer: NodeJS.Timeout | null = null;
  let sending: Promise<void> | null = null;

  const keep = (spans: readonly Span[]): void => {
    lost += Math.max(0, spans.length - spansWaitingAtMost);
    waiting = spans.slice(0, spansWaitingAtMost);
  };
  const note = (sent: ExportResult, spans: readonly Span[]): void => {
    if (sent === 'sent') {
      if (failures > 0) log('traces are sent again', { lost_spans: lost });
      failures = 0;
      lost = 0;
      return;
    }
    failures += 1;
    if (failures === 1) log('traces cannot be sent; tasks go on', { problem: sent.problem });
    if (sent.mayRetry) keep([...spans, ...waiting]);
    else lost += spans.length;
  };
  const sendNext = async (signal: AbortSignal): Promise<void> => {
    const spans = waiting.slice(0, perRequest);
    waiting = waiting.slice(perRequest);
    const body = redact(JSON.stringify(exportRequest(spans, resource)));
    const limit = AbortSignal.any([signal, AbortSignal.timeout(requestMs)]);
    note(await sendSpans(collector, body, limit), spans);
  };
  const sendLater = (): void => {
    if (timer !== null || sending !== null || waiting.length === 0 || stopping.signal.aborted)
      return;
    const pause = Math.min(gatherSpansMs * 2 ** failures, longestExportPauseMs);
    timer = setTimeout(() => {
      timer = null;
      sending = sendNext(stopping.signal).finally(() => {
        sending = null;
        sendLater();
      });
    }, pause).unref();
  };

  return {
    add: (spans) => {
      if (spans.length === 0 || stopping.signal.aborted) return;
      keep([...waiting, ...spans]);
      sendLater();
    },
    stop: async () => {
      if (timer !== null) clearTimeout(timer);
      const limit = AbortSignal.timeout(stopExportMs);
      limit.addEventListener('abort', () => stopping.abort());
      await sending;
      if (timer !== null) clearTimeout(timer);
      const before = failures;
      while (waiting.length > 0 && failures === before && !limit.aborted) await sendNext(limit);
      stopping.abort();
    },
  };
};
