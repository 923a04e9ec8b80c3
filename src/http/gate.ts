import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer } from '../actors/store/port.ts';
import { afterAnswer } from '../actors/store/rows/rows.ts';
import { errorBody, requestErrors } from './error-table.ts';
import type { PageSessions } from './page-sessions.ts';

/** Counts the failures of each caller within a minute. */
interface Throttle {
  /** `over`: the caller has more than allowed; `first`: for the first time. */
  failed(caller: string): { readonly over: boolean; readonly first: boolean };
}

export const windowMs = 60_000;
const failuresAtMost = 20;
/** Above this many callers all counts restart, so memory stays bounded. */
const callersAtMost = 1_000;

export const createThrottle = (now: () => number): Throttle => {
  const callers = new Map<string, { since: number; failures: number }>();
  return {
    failed: (caller) => {
      const known = callers.get(caller);
      const fresh = known === undefined || now() - known.since >= windowMs;
      if (fresh && callers.size >= callersAtMost) callers.clear();
      const entry = fresh
        ? { since: now(), failures: 1 }
        : { ...known, failures: known.failures + 1 };
      callers.set(caller, entry);
      return {
        over: entry.failures > failuresAtMost,
        first: entry.failures === failuresAtMost + 1,
      };
    },
  };
};

export interface GateOptions {
  /** The accepted `host:port` forms, lower case; read for every request. */
  readonly hosts: () => readonly string[];
  /** Null when authentication is off. */
  readonly token: () => string | null;
  /** The logins of the web page. */
  readonly sessions: Pick<PageSessions, 'find'>;
  /** Part of the message of a 401. */
  readonly tokenHint: string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Routes that answer without a token, as `METHOD url`. */
const openRoutes: ReadonlySet<string> = new Set([
  'GET /health',
  'GET /health/ready',
  'GET /',
  'GET /assets/:name',
  'POST /page/session',
  'GET /.well-known/agent-card.json',
  'GET /.well-known/agent.json',
  'GET /agents/:role/.well-known/agent-card.json',
  // Signed.
  'POST /forge/webhook',
]);
/** A session of the web page cannot make another one. */
const routesOfServerToken: ReadonlySet<string> = new Set(['POST /page/codes']);

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
/** Constant time. */
export const safeEqual = (one: string, other: string): boolean =>
  timingSafeEqual(digest(one), digest(other));

export const rawValues = (
  { rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>,
  name: string,
): readonly string[] =>
  rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);

const routeOf = ({ method, routeOptions }: FastifyRequest): string =>
  `${method} ${routeOptions.url ?? ''}`;

/** False for pages, which a person opens by typing an address (Sec-Fetch-Site: none). */
const isApi = (request: FastifyRequest): boolean =>
  request.routeOptions.url !== undefined &&
  !(request.method === 'GET' && openRoutes.has(routeOf(request)));

/**
 * A link to the page, followed in a tab: the file that `agent open` writes leads there. The page
 * itself is public, and does nothing without a login.
 */
const opensPage = (request: FastifyRequest): boolean =>
  routeOf(request) === 'GET /' &&
  request.headers['sec-fetch-mode'] === 'navigate' &&
  request.headers['sec-fetch-dest'] === 'document';

/**
 * The check that refuses the request, or null. These checks stop DNS rebinding and requests that a
 * web page sends to this machine.
 */
const refusedBy = (request: FastifyRequest, hosts: readonly string[]): string | null => {
  const given = rawValues(request.raw, 'host');
  const [host] = given;
  if (given.length !== 1 || host === undefined || !hosts.includes(host.toLowerCase()))
    return 'the Host header';
  if (!(request.raw.url ?? '').startsWith('/')) return 'the request target';
  const [origin, ...more] = rawValues(request.raw, 'origin');
  if (
    more.length > 0 ||
    (origin !== undefined && !hosts.some((name) => origin.toLowerCase() === `http://${name}`))
  )
    return 'the Origin header';
  const site = request.headers['sec-fetch-site']?.toString().toLowerCase();
  const isForeign = site === 'cross-site' || site === 'same-site';
  if ((isForeign && !opensPage(request)) || (site === 'none' && isApi(request)))
    return 'the Sec-Fetch-Site header';
  return request.method === 'OPTIONS' ? 'the method OPTIONS' : null;
};

/** Null when the request has no token, or more than one. */
export const bearerToken = ({ raw }: { readonly raw: IncomingMessage }): string | null => {
  const values = rawValues(raw, 'authorization');
  const match =
    values.length === 1 ? /^Bearer ([A-Za-z0-9_-]{1,256})$/.exec(values[0] ?? '') : null;
  return match?.[1] ?? null;
};

export const answerHeaders = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cache-control': 'no-store',
} as const;

/** With the query. */
const urlBytesAtMost = 2 * 1024;

const refuseUrl = (reply: FastifyReply): FastifyReply =>
  reply
    .code(requestErrors.uri_too_long)
    .send(
      errorBody(
        'uri_too_long',
        `the path and query of a request hold at most ${urlBytesAtMost} bytes`,
      ),
    );

const refuseToken = (
  request: FastifyRequest,
  reply: FastifyReply,
  throttle: Throttle,
  { tokenHint, log }: GateOptions,
): FastifyReply => {
  // A request without a token is no guess, so it is not counted.
  const guessed = request.headers.authorization !== undefined;
  const { over, first } = guessed ? throttle.failed(request.ip) : { over: false, first: false };
  if (first)
    log('too many requests with a wrong token; they are throttled', { address: request.ip });
  if (over)
    return reply
      .code(requestErrors.too_many_failures)
      .header('retry-after', windowMs / 1_000)
      .send(errorBody('too_many_failures', `too many requests with a wrong token; ${tokenHint}`));
  return reply
    .code(requestErrors.unauthorized)
    .header('www-authenticate', 'Bearer')
    .send(
      errorBody('unauthorized', `send the header 'Authorization: Bearer <token>'; ${tokenHint}`),
    );
};

const refuseSession = (reply: FastifyReply, { tokenHint }: GateOptions): FastifyReply =>
  reply
    .code(requestErrors.forbidden)
    .send(errorBody('forbidden', `this needs the token of the server; ${tokenHint}`));

type Rights = Pick<GateOptions, 'token' | 'sessions'>;

/** False from when the token of a request is replaced, and from the end of its session. */
export const isStillAllowed = (
  request: FastifyRequest,
  { token, sessions }: Rights,
): Answer<boolean> => {
  const expected = token();
  const given = bearerToken(request);
  if (expected === null) return true;
  if (given === null || safeEqual(given, expected)) return given !== null;
  return afterAnswer(sessions.find(given), (found) => found !== null);
};

export const createGate = (options: GateOptions) => {
  const throttle = createThrottle(() => performance.now());
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply | undefined> => {
    reply.headers(answerHeaders);
    const check = refusedBy(request, options.hosts());
    if (check !== null)
      return reply
        .code(requestErrors.forbidden)
        .send(errorBody('forbidden', `refused by the check of ${check}`, { check }));
    if ((request.raw.url ?? '').length > urlBytesAtMost) return refuseUrl(reply);
    const expected = options.token();
    const open = openRoutes.has(routeOf(request));
    if (open || expected === null) return undefined;
    const given = bearerToken(request);
    if (given !== null && safeEqual(given, expected)) return undefined;
    if (given !== null && (await options.sessions.find(given)) !== null)
      return routesOfServerToken.has(routeOf(request)) ? refuseSession(reply, options) : undefined;
    return refuseToken(request, reply, throttle, options);
  };
};
