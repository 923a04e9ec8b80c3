import type { Span } from './span.ts';

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

export interface Resource {
  readonly serviceName: string;
  readonly version: string;
}

/** `ExportTraceServiceRequest` as OTLP/HTTP sends it in JSON. */
export const exportRequest = (
  spans: readonly Span[],
  { serviceName, version }: Resource,
): object => ({
  resourceSpans: [
    {
      resource: {
        attributes: attributesOf({ 'service.name': serviceName, 'service.version': version }),
      },
      scopeSpans: [{ scope: { name: 'agent-task-server', version }, spans: spans.map(spanJson) }],
    },
  ],
});
