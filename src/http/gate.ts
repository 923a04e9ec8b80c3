import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer } from '../actors/store/port.ts';
import { afterAnswer } from '../actors/store/rows/rows.ts';
import type { Right, ServiceError } from '../machines/errors.ts';
import { errorBody, errorStatuses, requestErrors } from './error-table.ts';
import {
  addressOf,
  type Caller,
  callerFor,
  createThrottle,
  type Identify,
  type Throttle,
  windowMs,
} from './people/callers.ts';
import type { Guard } from './people/guard.ts';
import { holds, routeRights } from './people/rights.ts';

export interface GateOptions {
  /** The accepted `host:port` forms, lower case; read for every request. */
  readonly hosts: () => readonly string[];
  readonly identify: Identify;
  readonly refuse: Guard['refuse'];
  /** Part of the message of a 401. */
  readonly tokenHint: string;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** A session of the web page cannot make another one. */
const routesWithoutSession: ReadonlySet<string> = new Set(['POST /page/codes']);

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
  !(request.method === 'GET' && routeRights[routeOf(request)] === 'open');

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
  const { over, first } = guessed
    ? throttle.failed(addressOf(request))
    : { over: false, first: false };
  if (first)
    log('too many requests with a wrong token; they are throttled', {
      address: addressOf(request),
    });
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

const refuseRight = (reply: FastifyReply, error: ServiceError): FastifyReply =>
  reply
    .code(errorStatuses[error.code].http)
    .send(errorBody(error.code, error.message, error.facts));

/** `owner`: only the token of the server may; a right: it lacks that. */
const mayUse = (caller: Caller, route: string): 'yes' | 'session' | Right | 'owner' => {
  if (caller.isSession && routesWithoutSession.has(route)) return 'session';
  const needs = routeRights[route];
  if (caller.isOwner || needs === 'open') return 'yes';
  if (needs === undefined) return 'owner';
  return holds(caller.rights, needs) ? 'yes' : needs;
};

/** False from when the token of a request is replaced, revoked or too old, or its session ends. */
export const isStillAllowed = (
  request: FastifyRequest,
  { identify }: Pick<GateOptions, 'identify'>,
): Answer<boolean> =>
  afterAnswer(
    identify(bearerToken(request)),
    (found) => found !== null && mayUse(callerFor(request, found), routeOf(request)) === 'yes',
  );

const callers = new WeakMap<FastifyRequest, Caller>();
/** Of a request that the gate let through. */
export const callerOf = (request: FastifyRequest): Caller => {
  const caller = callers.get(request);
  if (caller === undefined) throw new Error('nobody asks: the route is open');
  return caller;
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
    const route = routeOf(request);
    if (routeRights[route] === 'open') return undefined;
    const found = await options.identify(bearerToken(request));
    if (found === null) return refuseToken(request, reply, throttle, options);
    const caller = callerFor(request, found);
    const needs = mayUse(caller, route);
    if (needs === 'session' || needs === 'owner') return refuseSession(reply, options);
    if (needs !== 'yes') return refuseRight(reply, await options.refuse(caller, route, needs));
    callers.set(request, caller);
    return undefined;
  };
};
