import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Role } from '../../machines/task.ts';
import { bodyTooLarge, readJson, wrongMediaType } from '../json-rpc.ts';

import { notAllowedText } from '../other-method.ts';
import type { ReserveStream } from '../streams/stream-routes.ts';
import { activateExtensions, contextFor, openEvents, requireVersion, roleIn } from './dispatch.ts';
import {
  A2aError,
  httpErrorOf,
  invalidParams,
  restMediaType,
  undecodedPath,
  unknownRoleText,
  wrongTypeError,
} from './errors.ts';
import { type Operations, toA2aError } from './operations.ts';
import type { A2aRules, StreamResponse } from './protocol.ts';
import { fromProtoMembers } from './schemas.ts';

interface RestOptions {
  readonly operations: Operations;
  readonly reserveStream: ReserveStream;
  readonly redact: (text: string) => string;
  readonly onInternal: (error: unknown) => void;
  readonly onRequest: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;
  readonly rules: () => A2aRules;
  readonly extendedCard: (request: FastifyRequest, role: Role | null) => object;
}

interface RestCall {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

type RestQuery = Readonly<Record<string, unknown>>;

const booleans: Readonly<Record<string, boolean>> = { true: true, false: false };

/** Each value of a query is text; `schemas.ts` reads its numbers. */
const fromQuery = (query: RestQuery): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      if (typeof value !== 'string') throw invalidParams(name, 'is given more than once');
      return [name, /^include_?artifacts$/i.test(name) ? (booleans[value] ?? value) : value];
    }),
  );

const requestBody = ({ body }: FastifyRequest): Record<string, unknown> => {
  const text = typeof body === 'string' ? body : '';
  if (text === '') return {};
  const read = readJson(text);
  if ('problem' in read) throw invalidParams('body', read.problem);
  const { value } = read;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidParams('body', 'expected an object');
  return value as Record<string, unknown>;
};

const decodedSegment = (segment: string): string => {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw undecodedPath();
  }
};

const configs = 'pushNotificationConfigs';
/** The name of the method of push notification configs, by verb and whether one is named. */
const configMethods: Readonly<Record<string, string>> = {
  'POST all': 'CreateTaskPushNotificationConfig',
  'GET all': 'ListTaskPushNotificationConfigs',
  'GET one': 'GetTaskPushNotificationConfig',
  'DELETE one': 'DeleteTaskPushNotificationConfig',
};
const taskActions: Readonly<Record<string, string>> = {
  'POST cancel': 'CancelTask',
  'POST subscribe': 'SubscribeToTask',
  'GET subscribe': 'SubscribeToTask',
};
const plainMethods: Readonly<Record<string, string>> = {
  'POST message:send': 'SendMessage',
  'POST message:stream': 'SendStreamingMessage',
  'GET tasks': 'ListTasks',
  'GET extendedAgentCard': 'GetExtendedAgentCard',
};
const routeStarts: ReadonlySet<string> = new Set([
  'message:send',
  'message:stream',
  'tasks',
  'extendedAgentCard',
]);

const unknownPath = (verb: string, path: string): A2aError =>
  new A2aError('METHOD_NOT_FOUND', `there is no ${verb} ${path.slice(0, 200)}`);

/**
 * As it was sent: the router decodes it as a whole, so a slash in an id would divide it. A slash at
 * its end means nothing.
 */
const pathOf = ({ raw }: FastifyRequest): string => {
  const path = /\/a2a\/rest\/([^?#]*)/.exec(raw.url ?? '')?.[1] ?? '';
  return path.endsWith('/') ? path.slice(0, -1) : path;
};

const unknownRole = ({ params }: FastifyRequest): A2aError =>
  new A2aError('METHOD_NOT_FOUND', unknownRoleText((params as { role: string }).role));

/** The call that an address means. @throws A2aError */
const callOf = (verb: string, path: string, given: Record<string, unknown>): RestCall => {
  const all = path.split('/').map(decodedSegment);
  if (all[0] === 'v1' && all.length > 1)
    throw new A2aError('VERSION_NOT_SUPPORTED', 'A2A 0.3 is served by JSON-RPC only');
  const hasTenant = !routeStarts.has(all[0] ?? '') && all.length > 1;
  const [first = '', id, third, fourth, ...more] = hasTenant ? all.slice(1) : all;
  const params = hasTenant ? { ...given, tenant: all[0] } : given;
  const found = (method: string | undefined, own: Record<string, unknown> = {}): RestCall => {
    if (method === undefined || more.length > 0) throw unknownPath(verb, path);
    return { method, params: { ...params, ...own } };
  };
  if (id === undefined) return found(plainMethods[`${verb} ${first}`]);
  if (first !== 'tasks') throw unknownPath(verb, path);
  if (third === configs)
    return found(configMethods[`${verb} ${fourth === undefined ? 'all' : 'one'}`], {
      taskId: id,
      ...(fourth === undefined ? {} : { id: fourth }),
    });
  if (third !== undefined) throw unknownPath(verb, path);
  const colon = id.lastIndexOf(':');
  if (colon < 0) return found(verb === 'GET' ? 'GetTask' : undefined, { id });
  return found(taskActions[`${verb} ${id.slice(colon + 1)}`], { id: id.slice(0, colon) });
};

const verbs = ['GET', 'POST', 'DELETE'] as const;

/** @throws METHOD_NOT_ALLOWED when the address takes other verbs */
const requireVerb = (verb: string, path: string, reply: FastifyReply): void => {
  const allowed = verbs.filter((each) => {
    try {
      return callOf(each, path, {}).method !== '';
    } catch {
      return false;
    }
  });
  if (allowed.length === 0 || allowed.some((each) => each === verb)) return;
  reply.header('allow', allowed.join(', '));
  throw new A2aError('METHOD_NOT_ALLOWED', notAllowedText(verb, allowed));
};

const sendError = (reply: FastifyReply, error: A2aError): FastifyReply => {
  const { code, body } = httpErrorOf(error);
  return reply.code(code).type(restMediaType).send(JSON.stringify(body));
};

/** The HTTP+JSON binding: an address for each method, the same operations behind it. */
export const addRestRoutes = (app: FastifyInstance, options: RestOptions): void => {
  const { operations, redact, onInternal, onRequest, extendedCard } = options;
  const { calls, streams } = operations;

  const handle = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    try {
      const role = roleIn(request);
      const path = pathOf(request);
      if (role === undefined) throw unknownRole(request);
      requireVersion(request, '1.0', options.rules());
      activateExtensions(request, reply);
      const { 'A2A-Version': _, ...query } = request.query as Record<string, unknown>;
      requireVerb(request.method, path, reply);
      const given = request.method === 'GET' ? fromQuery(query) : requestBody(request);
      const { method, params } = callOf(request.method, path, fromProtoMembers(given));
      const context = contextFor(reply, role);
      const stream = streams[method];
      if (stream !== undefined) {
        const frameOf = (event: StreamResponse): string => redact(JSON.stringify(event));
        return await openEvents(options, reply, () => stream(params, context), frameOf);
      }
      const call = calls[method];
      const result = call === undefined ? extendedCard(request, role) : await call(params, context);
      return reply.type(restMediaType).send(JSON.stringify(result));
    } catch (error) {
      return sendError(reply, toA2aError(error, onInternal));
    }
  };

  for (const url of ['/a2a/rest/*', '/agents/:role/a2a/rest/*'])
    app.route({
      method: ['GET', 'POST', 'DELETE', 'PUT', 'PATCH'],
      url,
      onRequest,
      handler: handle,
      errorHandler: (error, _request, reply) => {
        const { code } = error as { readonly code?: string };
        if (code === wrongMediaType)
          return sendError(reply, wrongTypeError('application/a2a+json'));
        if (code === bodyTooLarge)
          return sendError(reply, invalidParams('body', 'is larger than 1 MiB'));
        return sendError(reply, toA2aError(error, onInternal));
      },
    });
};
