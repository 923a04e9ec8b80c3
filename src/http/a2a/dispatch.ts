import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { type Role, roles } from '../../machines/task.ts';
import { envelopeErrors, errorBody, requestErrors } from '../error-table.ts';
import { callerOf } from '../gate.ts';
import { type MoreMethods, readJson, rpcRequestSchema } from '../json-rpc.ts';
import type { SseConnection } from '../streams/sse.ts';
import type { ReserveStream } from '../streams/stream-routes.ts';
import { A2aError, rpcErrorOf, unknownRoleText } from './errors.ts';
import { type OperationContext, type Operations, toA2aError } from './operations.ts';
import { type A2aRules, type A2aVersion, extensionUri, type StreamResponse } from './protocol.ts';
import { eventTo03, methodNames03, methodOf03, paramsFrom03, resultTo03 } from './version-03.ts';

interface OpenEventsPorts {
  readonly reserveStream: ReserveStream;
  readonly onInternal: (error: unknown) => void;
}

/** Sends the events no faster than the client reads. */
const pump = async (
  connection: SseConnection,
  events: AsyncGenerator<StreamResponse>,
  frameOf: (event: StreamResponse) => string,
): Promise<void> => {
  for await (const event of events) {
    if (connection.closed()) break;
    connection.write(`data: ${frameOf(event)}\n\n`);
    await connection.drained();
  }
  connection.end();
};

/**
 * Takes a place among the streams before anything is changed: a client that is refused may send its
 * message again. Rejects with what `start` rejects with, before any event.
 */
export const openEvents = async (
  { reserveStream, onInternal }: OpenEventsPorts,
  reply: FastifyReply,
  start: () => Promise<{ readonly events: AsyncGenerator<StreamResponse> }>,
  frameOf: (event: StreamResponse) => string,
): Promise<FastifyReply> => {
  const reserved = reserveStream(reply);
  if ('refused' in reserved) return reserved.refused;
  const started = await start().catch((error: unknown) => {
    reserved.release();
    throw error;
  });
  return reserved.open((connection) => {
    pump(connection, started.events, frameOf).catch((error: unknown) => {
      onInternal(error);
      connection.end();
    });
  });
};

const extendedCardMethod = 'GetExtendedAgentCard';

type Id = string | number | null;

export const rpcErrorAnswer = (id: Id, error: A2aError) => ({
  jsonrpc: '2.0',
  id,
  error: rpcErrorOf(error),
});

/** A call with unknown members is refused, as `json-rpc.ts` refuses it. */
const streamCallSchema = rpcRequestSchema.transform(({ id = null, ...call }) => ({ ...call, id }));

const notServed = (version: string, versions: readonly A2aVersion[]): A2aError =>
  new A2aError(
    'VERSION_NOT_SUPPORTED',
    `A2A ${JSON.stringify(version.slice(0, 20))} is not served here; a2a.versions is ${versions.join(', ')}`,
  );

/**
 * The name of a method says its version; a header only refuses what is not served. A patch number
 * makes no difference. `isStrict` also refuses 1.0 without a header. @throws VERSION_NOT_SUPPORTED
 */
export const requireVersion = (
  { headers, query }: FastifyRequest,
  spoken: A2aVersion,
  { versions, isStrict }: A2aRules,
): void => {
  const inQuery = (query as Readonly<Record<string, unknown>>)['A2A-Version'];
  const named = String(headers['a2a-version'] ?? inQuery ?? '').trim();
  const known = versions.some((version) => named === version || named.startsWith(`${version}.`));
  if (named !== '' && !known) throw notServed(named, versions);
  if (named === '' && isStrict && spoken === '1.0')
    throw new A2aError('VERSION_NOT_SUPPORTED', 'send the header A2A-Version: 1.0');
  if (!versions.includes(spoken)) throw notServed(spoken, versions);
};

/** The second one is that of 0.3. */
const extensionHeaders = ['a2a-extensions', 'x-a2a-extensions'] as const;

/** Names the extension in the answer when the client asked for it. */
export const activateExtensions = ({ headers }: FastifyRequest, reply: FastifyReply): void => {
  for (const name of extensionHeaders) {
    const wanted = String(headers[name] ?? '').split(',');
    if (wanted.some((uri) => uri.trim() === extensionUri)) reply.header(name, extensionUri);
  }
};

/** The role that the address names; an unknown role is no address of ours. */
export const roleIn = ({ params }: FastifyRequest): Role | null | undefined => {
  const { role } = params as { readonly role?: string };
  return role === undefined ? null : roles.find((known) => known === role);
};

export const refuseRole = ({ params }: FastifyRequest, reply: FastifyReply): FastifyReply => {
  const { role = '' } = params as { readonly role?: string };
  return reply.code(requestErrors.not_found).send(errorBody('not_found', unknownRoleText(role)));
};

/** Most calls are none of A2A, so its signal is made when it is asked for. */
export const contextFor = (reply: FastifyReply, role: Role | null): OperationContext => {
  let gone: AbortController | null = null;
  const key = reply.request.headers['idempotency-key'];
  return {
    role,
    version: '1.0',
    caller: callerOf(reply.request),
    idempotencyKey: key === undefined ? null : String(key),
    signal: () => {
      if (gone === null) {
        const made = new AbortController();
        reply.raw.once('close', () => made.abort());
        gone = made;
      }
      return gone.signal;
    },
  };
};

interface DispatchPorts {
  readonly operations: Operations;
  readonly reserveStream: ReserveStream;
  readonly redact: (text: string) => string;
  readonly onInternal: (error: unknown) => void;
  readonly rules: () => A2aRules;
  /** For callers with the token. @throws A2aError */
  readonly extendedCard: (request: FastifyRequest, role: Role | null) => object;
}

export interface Dispatch {
  /** The methods of A2A for one request; a stream in a batch is refused. */
  methods(request: FastifyRequest, context: OperationContext): MoreMethods;
  /** The answer to a single call of a streaming method; null for everything else. */
  stream(
    request: FastifyRequest,
    reply: FastifyReply,
    context: OperationContext,
  ): Promise<FastifyReply | object> | null;
}

interface Spoken {
  readonly version: A2aVersion;
  /** The name of the method in 1.0. */
  readonly name: string;
}

const streamInBatch = (id: Id, method: string) => ({
  jsonrpc: '2.0',
  id,
  error: {
    code: envelopeErrors.invalid_request.rpc,
    message: `${method} streams, so it cannot be in a batch`,
  },
});

const refuseUnknownMethod = (): never => {
  throw new A2aError('METHOD_NOT_FOUND', 'unknown method');
};

/**
 * The addresses of A2A; at the others our own methods are at home. Clients that keep a base address
 * add the slash.
 */
export const a2aAddresses = ['/a2a', '/a2a/', '/agents/:role/a2a', '/agents/:role/a2a/'] as const;

const paramsOfVersion = ({ version, name }: Spoken, params: unknown): unknown =>
  version === '0.3' ? paramsFrom03(name, params) : params;

type StreamCall = z.infer<typeof streamCallSchema> & { readonly spoken: Spoken };

const eventStream = 'text/event-stream';

/**
 * Opens the stream of a call. What fails before its first event is a plain answer; clients of 0.3
 * read that only as an event.
 */
const createOpenCall =
  (ports: DispatchPorts) =>
  async (
    request: FastifyRequest,
    reply: FastifyReply,
    context: OperationContext,
    { spoken, id, params }: StreamCall,
  ): Promise<FastifyReply | object> => {
    const { operations, redact, onInternal, rules } = ports;
    const { version, name } = spoken;
    const frameOf = (event: StreamResponse): string => {
      const endsAtQuestion = name === 'SendStreamingMessage';
      const result = version === '0.3' ? eventTo03(event, endsAtQuestion) : event;
      return redact(JSON.stringify({ jsonrpc: '2.0', id, result }));
    };
    try {
      requireVersion(request, version, rules());
      const run = operations.streams[name] ?? refuseUnknownMethod;
      const start = () => run(paramsOfVersion(spoken, params), { ...context, version });
      return await openEvents(ports, reply, start, frameOf);
    } catch (error) {
      const answer = rpcErrorAnswer(id, toA2aError(error, onInternal));
      const wantsEvents = (request.headers.accept ?? '').includes(eventStream);
      if (version === '1.0' || !wantsEvents) return answer;
      return reply.type(eventStream).send(`data: ${JSON.stringify(answer)}\n\n`);
    }
  };

export const createDispatch = (ports: DispatchPorts): Dispatch => {
  const { operations, onInternal, rules, extendedCard } = ports;
  const { calls, streams } = operations;
  const isKnown = (name: string): boolean =>
    name === extendedCardMethod || Object.hasOwn(calls, name) || Object.hasOwn(streams, name);
  const spokenIn = (method: string): Spoken | null => {
    const name = methodOf03(method);
    if (name !== undefined) return { version: '0.3', name };
    return isKnown(method) ? { version: '1.0', name: method } : null;
  };
  const open = createOpenCall(ports);
  const namesFor: Readonly<Record<A2aVersion, readonly string[]>> = {
    '1.0': [...Object.keys(calls), ...Object.keys(streams), extendedCardMethod],
    '0.3': methodNames03,
  };
  const unknownMethod = (method: string): A2aError => {
    const names = rules().versions.flatMap((version) => namesFor[version]);
    return new A2aError(
      'METHOD_NOT_FOUND',
      `unknown method ${method.slice(0, 100)}; the methods are ${names.join(', ')}`,
    );
  };

  const answer = async (
    request: FastifyRequest,
    context: OperationContext,
    spoken: Spoken,
    given: unknown,
  ): Promise<unknown> => {
    requireVersion(request, spoken.version, rules());
    if (spoken.name === extendedCardMethod) return extendedCard(request, context.role);
    const { version } = spoken;
    const call = calls[spoken.name] ?? refuseUnknownMethod;
    const result = await call(paramsOfVersion(spoken, given), { ...context, version });
    return version === '0.3' ? resultTo03(spoken.name, result) : result;
  };

  return {
    methods: (request, context) => ({
      has: (method) => spokenIn(method) !== null,
      refuseUnknown: ({ method, id = null }) =>
        a2aAddresses.some((address) => address === request.routeOptions.url)
          ? rpcErrorAnswer(id, unknownMethod(method))
          : null,
      answer: async ({ method, params, id = null }) => {
        const spoken = spokenIn(method);
        if (spoken !== null && Object.hasOwn(streams, spoken.name))
          return streamInBatch(id, method);
        try {
          const result =
            spoken === null
              ? refuseUnknownMethod()
              : await answer(request, context, spoken, params);
          return { jsonrpc: '2.0', id, result };
        } catch (error) {
          return rpcErrorAnswer(id, toA2aError(error, onInternal));
        }
      },
    }),
    stream: (request, reply, context) => {
      const text = typeof request.body === 'string' ? request.body : '';
      if (!/stream|subscribe/i.test(text)) return null;
      const read = readJson(text);
      const call = 'value' in read ? streamCallSchema.safeParse(read.value) : null;
      const spoken = call?.success === true ? spokenIn(call.data.method) : null;
      if (call?.success !== true || spoken === null || !Object.hasOwn(streams, spoken.name))
        return null;
      return open(request, reply, context, { ...call.data, spoken });
    },
  };
};
