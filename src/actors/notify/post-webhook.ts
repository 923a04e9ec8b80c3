import { createHmac } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { messageOf } from '../../machines/message-of.ts';
import {
  AddressRefusedError,
  type AllowPrivate,
  createAllowedLookup,
  requireAllowedHost,
} from '../network/addresses.ts';
import type { Notice, NoticeType } from './notice.ts';

export interface Webhook {
  /** Made of its URL; names its place in the journal. */
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

const postedWith = (status: number): Posted => {
  if (status >= 200 && status < 300) return 'sent';
  const problem =
    status >= 300 && status < 400
      ? `the receiver answered ${status}; redirects are not followed`
      : `the receiver answered ${status}`;
  return { problem, mayRetry: mayRetryStatus(status) };
};

export interface PostLimits {
  readonly stopping: AbortSignal;
  readonly limitMs: number;
}

export interface PostRequest {
  readonly url: URL;
  readonly allowPrivate: AllowPrivate;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

/** The headers of Standard Webhooks 1.0: who receives it can tell that it is ours, new and whole. */
export const signedHeaders = (
  id: string,
  body: string,
  secret: Uint8Array | string,
  at: number,
) => {
  const timestamp = String(Math.floor(at / 1_000));
  const signature = createHmac('sha256', secret)
    .update(`${id}.${timestamp}.${body}`)
    .digest('base64');
  return {
    'user-agent': 'agent-task-server',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
};

/** Posts once, to an address that was checked. The answer's body is not read. */
export const postOnce = (
  { url, allowPrivate, headers, body }: PostRequest,
  { stopping, limitMs }: PostLimits,
): Promise<Posted> => {
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
        agent: false,
        signal,
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        lookup: createAllowedLookup(allowPrivate),
      })
        .on('error', fail)
        .on('response', (response) => {
          response.on('error', () => {}).destroy();
          resolve(postedWith(response.statusCode ?? 0));
        })
        .end(body);
    } catch (error) {
      fail(error);
    }
  });
};

export const postWebhook = (
  { url, secret, allowPrivate }: Webhook,
  notice: Notice,
  at: number,
  limits: PostLimits,
): Promise<Posted> => {
  const body = JSON.stringify(notice);
  const headers = {
    'content-type': 'application/json',
    ...signedHeaders(notice.data.id, body, secret, at),
  };
  return postOnce({ url, allowPrivate, headers, body }, limits);
};
