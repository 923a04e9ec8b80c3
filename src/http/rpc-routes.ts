import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { System } from '../actors/system.ts';
import {
  a2aAddresses,
  activateExtensions,
  contextFor,
  type Dispatch,
  refuseRole,
  roleIn,
  rpcErrorAnswer,
} from './a2a/dispatch.ts';
import { invalidParams, wrongTypeError } from './a2a/errors.ts';
import type { Identity } from './discovery.ts';
import { errorBody, requestErrors } from './error-table.ts';
import { bodyTooLarge, createRpcServer, retryAfterOf, wrongMediaType } from './json-rpc.ts';

import type { Method } from './methods.ts';
import { openApiDocument } from './openapi.ts';

/** Takes one request; false refuses it. */
type RateLimit = () => boolean;

const retryAfterSeconds = 1;

/** A token bucket: `perSecond` requests a second, and twice as many at once. `now` in ms. */
export const createRateLimit = (perSecond: () => number, now: () => number): RateLimit => {
  let left = Number.POSITIVE_INFINITY;
  let asked = now();
  return () => {
    const at = now();
    left = Math.min(2 * perSecond(), left + ((at - asked) * perSecond()) / 1_000);
    asked = at;
    if (left < 1) return false;
    left -= 1;
    return true;
  };
};

export interface RpcRouteOptions extends Identity {
  readonly system: Pick<System, 'service' | 'settings'>;
  /** A batch counts as one request. Called for every request. */
  readonly requestsPerSecond: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export const refuseRate = (reply: FastifyReply): FastifyReply =>
  reply
    .code(requestErrors.too_many_requests)
    .header('retry-after', retryAfterSeconds)
    .send(
      errorBody(
        'too_many_requests',
        'too many requests; send fewer per second, or send them as a batch',
      ),
    );

export type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;

/** Refuses requests that come faster than the limit allows. */
export const createRateGate = (requestsPerSecond: () => number): OnRequest => {
  const takeToken = createRateLimit(requestsPerSecond, () => performance.now());
  return (_request, reply, done) => {
    if (takeToken()) done();
    else refuseRate(reply);
  };
};

interface RpcRouteParts {
  readonly methods: Readonly<Record<string, Method>>;
  readonly onRequest: OnRequest;
  /** The methods of A2A, at the same addresses. */
  readonly a2a: Dispatch;
}

/** Answers a body that cannot be read as A2A answers: clients expect a code that is a number. */
const answerUnreadable = (
  error: { readonly code?: string },
  _request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply => {
  if (error.code === wrongMediaType)
    return reply
      .code(requestErrors.unsupported_media_type)
      .send(rpcErrorAnswer(null, wrongTypeError('application/json')));
  if (error.code === bodyTooLarge)
    return reply
      .code(requestErrors.payload_too_large)
      .send(rpcErrorAnswer(null, invalidParams('body', 'is larger than 1 MiB')));
  return reply.send(error);
};

export const addRpcRoutes = (
  app: FastifyInstance,
  { methods, onRequest, a2a }: RpcRouteParts,
  options: RpcRouteOptions,
): void => {
  const { log } = options;
  const rpc = createRpcServer(methods, (error) => log('JSON-RPC method failed', { error }));
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const role = roleIn(request);
    if (role === undefined) return refuseRole(request, reply);
    const context = contextFor(reply, role);
    activateExtensions(request, reply);
    const streaming = a2a.stream(request, reply, context);
    if (streaming !== null) {
      const streamed = await streaming;
      return streamed === reply ? reply : reply.send(streamed);
    }
    const text = typeof request.body === 'string' ? request.body : '';
    const more = {
      ...a2a.methods(request, context),
      call: { gone: context.signal, caller: context.caller },
    };
    const answer = await rpc(text, more);
    if (answer.status === 204) return reply.code(204).send();
    const retryAfter = retryAfterOf(answer.body);
    if (retryAfter !== null) reply.header('retry-after', retryAfter);
    return reply.code(answer.status).send(answer.body);
  };
  for (const path of ['/a2a/execute', '/a2a/status', '/a2a/discovery'])
    app.post(path, { onRequest }, handler);
  for (const path of a2aAddresses)
    app.post(path, { onRequest, errorHandler: answerUnreadable }, handler);
  app.get('/openapi.json', async () => openApiDocument(options.name, options.version));
};
