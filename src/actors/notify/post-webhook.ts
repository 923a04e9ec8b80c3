import { createHmac } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { messageOf } from '../../machines/message-of.ts';
import { AddressRefusedError, createAllowedLookup, requireAllowedHost } from './allowed-address.ts';
import type { Notice, NoticeType } from './notice.ts';

export interface Webhook {
  /** Of its URL; names its place in the journal. */
  readonly key: string;
  readonly url: URL;
  readonly events: ReadonlySet<NoticeType>;
  readonly secret: Uint8Array;
  /** Whether it may be on this machine or in a local network. */
  readonly allowPrivate: boolean;
}

export type Posted = 'sent' | { readonly problem: string; readonly mayRetry: boolean };

/** Too early, too many, or a fault of the receiver. */
const mayRetryStatus = (status: number): boolean =>
  status >= 500 || status === 408 || status === 425 || status === 429;

const resultOf = (status: number): Posted => {
  if (status >= 200 && status < 300) return 'sent';
  const problem =
    status >= 300 && status < 400
      ? `the receiver answered ${status}; redirects are not followed`
      : `the receiver answered ${status}`;
  return { problem, mayRetry: mayRetryStatus(status) };
};

interface Limits {
  readonly stopping: AbortSignal;
  readonly limitMs: number;
}

/** The headers of Standard Webhooks 1.0: who receives it can tell that it is ours, new and whole. */
const signedHeaders = (id: string, body: string, secret: Uint8Array, at: number) => {
  const timestamp = String(Math.floor(at / 1_000));
  const signature = createHmac('sha256', secret)
    .update(`${id}.${timestamp}.${body}`)
    .digest('base64');
  return {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'agent-task-server',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
};

/** Posts a notice once. The answer's body is not read. */
export const postWebhook = (
  { url, secret, allowPrivate }: Webhook,
  notice: Notice,
  at: number,
  { stopping, limitMs }: Limits,
): Promise<Posted> => {
  const body = JSON.stringify(notice);
  const late = AbortSignal.timeout(limitMs);
  const signal = AbortSignal.any([stopping, late]);
  return new Promise((resolve) => {
    const fail = (error: unknown): void => {
      const mayRetry = !(error instanceof AddressRefusedError);
      const problem = late.aborted ? `no answer in ${limitMs / 1_000} s` : messageOf(error);
      resolve({ problem, mayRetry });
    };
    try {
      requireAllowedHost(url, allowPrivate);
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
      send(url, {
        method: 'POST',
        headers: signedHeaders(notice.data.id, body, secret, at),
        lookup: createAllowedLookup(allowPrivate),
        agent: false,
        signal,
      })
        .on('error', fail)
        .on('response', (response) => {
          response.on('error', () => {}).destroy();
          resolve(resultOf(response.statusCode ?? 0));
        })
        .end(body);
    } catch (error) {
      fail(error);
    }
  });
};
