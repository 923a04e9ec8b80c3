import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { onTestFinished } from 'vitest';
import { z } from 'zod';

export const secretBytes = Buffer.alloc(32, 7);
export const secret = `whsec_${secretBytes.toString('base64')}`;

/** Every field that a receiver may get. */
const noticeSchema = z.strictObject({
  type: z.string(),
  timestamp: z.iso.datetime(),
  data: z.strictObject({
    id: z.string(),
    project: z.string(),
    task_id: z.string(),
    title: z.string(),
    status: z.string(),
    attempt: z.int(),
    reason: z.string().optional(),
    cost_usd: z.number().optional(),
    url: z.string().optional(),
  }),
});
export type ReceivedNotice = z.infer<typeof noticeSchema>;

/** The check of the Standard Webhooks specification, written after its text. */
const isSigned = (headers: IncomingHttpHeaders, body: string): boolean => {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': given } = headers;
  const expected = createHmac('sha256', secretBytes).update(`${id}.${at}.${body}`).digest('base64');
  const isFresh = Math.abs(Date.now() / 1_000 - Number(at)) < 300;
  return isFresh && String(given).split(' ').includes(`v1,${expected}`);
};

const noticeOf = (headers: IncomingHttpHeaders, body: string): ReceivedNotice => {
  if (!isSigned(headers, body)) throw new Error('wrong signature');
  const notice = noticeSchema.parse(JSON.parse(body));
  if (notice.data.id !== headers['webhook-id']) throw new Error('two ids');
  return notice;
};

/**
 * A receiver of webhooks on loopback. `answer` answers a request, counted from 1, and returns
 * whether its notice counts as received; without an answer the request hangs.
 */
export const startReceiver = async (
  answer: (response: ServerResponse, request: number) => boolean = (response) => {
    response.writeHead(204).end();
    return true;
  },
  port = 0,
  tls: { readonly key: string; readonly cert: string } | null = null,
) => {
  const received: ReceivedNotice[] = [];
  const ids: string[] = [];
  const faults: unknown[] = [];
  let requests = 0;
  const waiting = new Set<() => void>();
  const take: RequestListener = (request, response) => {
    request.setEncoding('utf8');
    let body = '';
    request.on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      requests += 1;
      ids.push(String(request.headers['webhook-id']));
      try {
        const notice = noticeOf(request.headers, body);
        if (answer(response, requests)) received.push(notice);
      } catch (error) {
        faults.push(error);
        response.writeHead(400).end();
      }
      for (const look of waiting) look();
    });
  };
  const server = tls === null ? createServer(take) : createTlsServer(tls, take);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(close);
  const address = server.address();
  const bound = typeof address === 'object' && address !== null ? address.port : 0;
  const until = (holds: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!holds()) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  return {
    ...{
      url: `${tls === null ? 'http' : 'https'}://127.0.0.1:${bound}/hook`,
      port: bound,
      received,
      ids,
      faults,
      until,
      close,
    },
    requests: () => requests,
  };
};
