import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { z } from 'zod';

const nanoseconds = z.string().regex(/^\d{16,20}$/);
const attributeSchema = z.strictObject({
  key: z.string(),
  value: z.union([
    z.strictObject({ stringValue: z.string() }),
    z.strictObject({ intValue: z.string().regex(/^-?\d+$/) }),
    z.strictObject({ doubleValue: z.number() }),
  ]),
});
const spanSchema = z.strictObject({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
  name: z.string().min(1),
  kind: z.int().min(1).max(5),
  startTimeUnixNano: nanoseconds,
  endTimeUnixNano: nanoseconds,
  attributes: z.array(attributeSchema),
  status: z.strictObject({ code: z.literal(2).optional(), message: z.string().optional() }),
});
/** `ExportTraceServiceRequest` of OTLP 1.x in JSON, with no field that it does not know. */
const requestSchema = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes: z.array(attributeSchema) }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string() }),
          spans: z.array(spanSchema),
        }),
      ),
    }),
  ),
});

const plain = (attributes: readonly z.infer<typeof attributeSchema>[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

export type ReceivedSpan = Omit<z.infer<typeof spanSchema>, 'attributes'> & {
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly resource: Readonly<Record<string, unknown>>;
};

/**
 * A collector of OpenTelemetry on loopback. `answer` handles a request instead of it; without an
 * answer the request hangs.
 */
export const startCollector = async (
  answer: (response: ServerResponse, request: number) => boolean = () => true,
) => {
  const spans: ReceivedSpan[] = [];
  const texts: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const faults: unknown[] = [];
  let changed = (): void => {};
  const take = (text: string): void => {
    texts.push(text);
    for (const { resource, scopeSpans } of requestSchema.parse(JSON.parse(text)).resourceSpans)
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({
          ...span,
          attributes: plain(span.attributes),
          resource: plain(resource.attributes),
        });
  };
  const server = createServer((request, response) => {
    request.setEncoding('utf8');
    let text = '';
    request.on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      headers.push(request.headers);
      const isTaken = answer(response, headers.length);
      if (isTaken) {
        try {
          if (request.url !== '/v1/traces') throw new Error(`wrong path ${request.url}`);
          take(text);
        } catch (error) {
          faults.push(error);
        }
        response.setHeader('content-type', 'application/json').end('{}');
      }
      changed();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds())
      await new Promise<void>((resolve) => {
        changed = resolve;
      });
  };
  return { endpoint: `http://127.0.0.1:${port}`, spans, texts, headers, faults, until };
};
