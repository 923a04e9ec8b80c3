import type { z } from 'zod';
import { messageOf } from '../../../machines/message-of.ts';
import { ForgeError } from '../port.ts';
import {
  type FaultContext,
  faultOf,
  isGraphQlLimit,
  notOurs,
  type RefusedAnswer,
  shortText,
} from './faults.ts';
import { createLimitGate } from './limit-gate.ts';

export interface ForgeOptions {
  /** `https://api.github.com`, or of an Enterprise server: `https://ghe.example/api/v3` */
  readonly apiUrl: string;
  /** `owner/name` */
  readonly repository: string;
  /** Asked before each request: a login counts at once. */
  readonly token: () => string | null;
  readonly fetch?: typeof fetch;
  /** Epoch ms. */
  readonly now: () => number;
  /** Before a request is repeated, and between writes. Default one second. */
  readonly pauseMs?: number;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface ForgeRequest<Data> {
  readonly method?: Method;
  /** Below the repository, or from the top of the API when it begins with `/`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** The answer with it is `unchanged` when it still is the newest. */
  readonly etag?: string | undefined;
  readonly schema: z.ZodType<Data>;
  readonly signal: AbortSignal;
}

export interface ForgeAnswer<Data> {
  readonly data: Data;
  readonly etag: string | null;
  /** Of a list with pages. */
  readonly lastPage: number;
}

/** An answer that is no success, as the caller of the request may look at it. */
export class ForgeRefusal extends ForgeError {
  readonly answer: RefusedAnswer;

  constructor(fault: ForgeError, answer: RefusedAnswer) {
    super(fault.fault, fault.message, fault.retryAt);
    this.answer = answer;
  }
}

export const unchanged = Symbol('unchanged');

const limitMs = 30_000;
const answerAtMost = 10 * 1024 * 1024;
const redirectsAtMost = 3;
const redirects = new Set([301, 302, 303, 307, 308]);
/** A `Response` with these has no body. */
const bodiless = new Set([204, 205, 304]);

/** Octokit repeats no request that ends with this name. */
const stopWith = (error: ForgeError): Error =>
  Object.assign(new Error(error.message, { cause: error }), { name: 'AbortError' });

/** The chunks of a body, at most so many bytes. */
export async function* readBounded(body: ReadableStream<Uint8Array>, atMost: number) {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > atMost) throw new RangeError(`more than ${atMost} bytes`);
    yield chunk;
  }
}

const causeOf = (error: unknown): string =>
  error instanceof Error && error.cause !== undefined ? messageOf(error.cause) : messageOf(error);

/**
 * Requests to one server. The token goes to its origin alone; a request ends after 30 s; an answer has
 * at most 10 MB; a redirect is followed to the same origin only, as a forge sends it for a renamed repository.
 */
const createFetch = (origin: string, { token, fetch: send = fetch }: ForgeOptions) => {
  const { host } = new URL(origin);
  const once = async (url: URL, init: RequestInit, signal: AbortSignal): Promise<Response> => {
    const key = token();
    const headers = new Headers(init.headers);
    headers.delete('authorization');
    if (key !== null && url.origin === origin) headers.set('authorization', `Bearer ${key}`);
    const { method = 'GET', body = null } = init;
    return send(url.href, { method, body, headers, redirect: 'manual', signal });
  };
  const follow = async (url: string, init: RequestInit, signal: AbortSignal): Promise<Response> => {
    let at = new URL(url);
    for (let hops = 0; ; hops += 1) {
      const answer = await once(at, init, signal);
      const location = answer.headers.get('location');
      if (!redirects.has(answer.status) || location === null) return answer;
      await answer.body?.cancel();
      const next = URL.canParse(location, at.href) ? new URL(location, at) : null;
      if (next?.origin !== origin || hops === redirectsAtMost)
        throw stopWith(
          new ForgeError(
            'gone',
            `${host} sends the request on to ${next?.host ?? 'another place'}, which is not asked; set forge.api_url and forge.repository to where the repository is now`,
          ),
        );
      at = next;
    }
  };
  const whole = async (answer: Response): Promise<Response> => {
    const chunks: Uint8Array[] = [];
    if (answer.body !== null)
      for await (const chunk of readBounded(answer.body, answerAtMost)) chunks.push(chunk);
    const { status, headers } = answer;
    return new Response(bodiless.has(status) ? null : Buffer.concat(chunks), { status, headers });
  };

  return async (url: string, init: RequestInit = {}): Promise<Response> => {
    const late = AbortSignal.timeout(limitMs);
    const signal = init.signal == null ? late : AbortSignal.any([late, init.signal]);
    try {
      return await whole(await follow(url, init, signal));
    } catch (error) {
      if (init.signal?.aborted) throw stopWith(new ForgeError('away', 'the request was stopped'));
      if (late.aborted)
        throw stopWith(
          new ForgeError('away', `${host} did not answer within ${limitMs / 1_000} s`),
        );
      if (error instanceof RangeError)
        throw stopWith(new ForgeError('away', `an answer of ${host} has ${error.message}`));
      throw error;
    }
  };
};

/** Rejects as soon as the signal is aborted: a pause before a repeated request does not look at it. */
const orStopped = <Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> =>
  new Promise((resolve, reject) => {
    const stop = (): void => reject(new ForgeError('away', 'the request was stopped'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    const settled = (): void => signal.removeEventListener('abort', stop);
    work.then(resolve, reject).finally(settled);
  });

const lastPageIn = (link: unknown): number => {
  const last = String(link ?? '')
    .split(',')
    .find((each) => each.includes('rel="last"'));
  const [, page = '1'] = /[?&]page=(\d{1,9})/.exec(last ?? '') ?? [];
  return Number.parseInt(page, 10);
};

const isRefused = (error: unknown): error is { readonly response: RefusedAnswer } =>
  error instanceof Error && 'response' in error && error.response !== undefined;

export const createClient = (given: ForgeOptions) => {
  const { repository, token, now, pauseMs = 1_000, fetch: sendNow = fetch } = given;
  const gate = createLimitGate(now);
  let sent = 0;
  const send: typeof fetch = async (...asked) => {
    const limit = gate.refusal();
    if (limit !== null) throw stopWith(limit);
    sent += 1;
    return sendNow(...asked);
  };
  const options = { ...given, fetch: send };
  const apiUrl = options.apiUrl.replace(/\/$/, '');
  const { origin, host } = new URL(apiUrl);
  const guarded = createFetch(origin, options);
  const loaded = async () => {
    const { createOctokit } = await import('./octokit.ts');
    return createOctokit(apiUrl, guarded, pauseMs);
  };
  let octokit: ReturnType<typeof loaded> | undefined;

  const withoutToken = (text: string): string => {
    const key = token();
    return key === null || key === '' ? text : text.replaceAll(key, '***');
  };
  const toForgeError = (error: unknown, context: FaultContext): ForgeError => {
    if (error instanceof ForgeError) return error;
    if (error instanceof Error && error.cause instanceof ForgeError) return error.cause;
    if (isRefused(error)) return new ForgeRefusal(faultOf(error.response, context), error.response);
    const why = shortText(causeOf(error));
    return new ForgeError('away', `${host} cannot be asked: ${why}; try again later`);
  };
  const safely = (error: ForgeError): ForgeError => {
    error.message = withoutToken(error.message);
    if (error.fault === 'limit') gate.close(error);
    return error;
  };

  const askNow = async <Data>({
    method = 'GET',
    path,
    query = {},
    body = {},
    etag,
    schema,
    signal,
  }: ForgeRequest<Data>): Promise<ForgeAnswer<Data> | typeof unchanged> => {
    const url = path.startsWith('/') ? path : `/repos/${repository}${path && `/${path}`}`;
    // An Enterprise server has it beside the other API.
    const address = url === '/graphql' ? `${apiUrl.replace(/\/v3$/, '')}${url}` : url;
    const what = `${method} ${url}`;
    const context = { what, host, hasToken: token() !== null, now: now() };
    try {
      octokit ??= loaded();
      const sent = (await octokit).request({
        method,
        url: address,
        ...query,
        ...body,
        headers: etag === undefined ? {} : { 'if-none-match': etag },
        request: method === 'GET' ? { signal } : { signal, retries: 0 },
      });
      const { data, headers } = await orStopped(sent, signal);
      if (isGraphQlLimit(data)) throw faultOf({ status: 429, headers, data }, context);
      const parsed = schema.safeParse(data);
      if (!parsed.success) throw notOurs(context);
      const { etag: tag, link } = headers;
      return { data: parsed.data, etag: tag ?? null, lastPage: lastPageIn(link) };
    } catch (error) {
      if (isRefused(error) && error.response.status === 304) return unchanged;
      throw safely(toForgeError(error, { ...context, now: now() }));
    }
  };

  const openFile = async (
    path: string,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array> | null> => {
    const late = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    const key = token();
    const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` };
    const context = { what: `GET ${path}`, host, hasToken: key !== null, now: now() };
    try {
      const url = `${apiUrl}/repos/${repository}/${path}`;
      let answer = await send(url, { headers, redirect: 'manual', signal: late });
      for (let hops = 0; redirects.has(answer.status) && hops < redirectsAtMost; hops += 1) {
        await answer.body?.cancel();
        const next = new URL(answer.headers.get('location') ?? '', answer.url || url);
        if (next.protocol !== new URL(apiUrl).protocol && next.protocol !== 'https:') return null;
        // The address itself is what lets us read it: no other host gets the token.
        const own = next.origin === origin ? headers : {};
        answer = await send(next.href, { headers: own, redirect: 'manual', signal: late });
      }
      if (answer.ok) return answer.body;
      await answer.body?.cancel();
      if (answer.status === 404 || answer.status === 410) return null;
      const { status } = answer;
      throw faultOf({ status, headers: Object.fromEntries(answer.headers), data: null }, context);
    } catch (error) {
      throw safely(toForgeError(error, context));
    }
  };

  const request = <Data>(asked: ForgeRequest<Data>) => gate.pass(() => askNow(asked));

  return {
    host,
    request,
    sent: () => sent,
    /** A request without an ETag. */
    ask: async <Data>(asked: Omit<ForgeRequest<Data>, 'etag'>): Promise<Data> => {
      const answer = await request(asked);
      if (answer === unchanged) throw notOurs({ host, what: asked.path });
      return answer.data;
    },
    /** Where an answer sends on to, for files at other hosts. Null: there is no such file any more. */
    fileAt: (path: string, signal: AbortSignal) => gate.pass(() => openFile(path, signal)),
  };
};

export type ForgeClient = ReturnType<typeof createClient>;
