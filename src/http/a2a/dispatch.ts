import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type Role, roles } from '../../machines/task.ts';
import { envelopeErrors } from '../error-table.ts';
import type { MoreMethods } from '../json-rpc.ts';
import { readJson } from '../read-json.ts';
import type { SseConnection } from '../sse.ts';
import type { OpenStream } from '../stream-routes.ts';
import { A2aError, rpcErrorOf } from './errors.ts';
import { type OperationContext, type Operations, toA2aError } from './operations.ts';
import { extensionUri, type StreamResponse } from './protocol.ts';

const extendedCardMethod = 'GetExtendedAgentCard';

type Id = string | number | null;

export const errorAnswer = (id: Id, error: A2aError) => ({
  ...{ jsonrpc: '2.0', id, error: rpcErrorOf(error) },
});

const streamCallSchema = z.looseObject({
  jsonrpc: z.literal('2.0'),
  method: z.string(),
  params: z.unknown(),
  id: z.union([z.string(), z.number(), z.null()]).default(null),
});

/** A patch number makes no difference; without a version we answer as 1.0. */
const isKnownVersion = (version: string): boolean =>
  version === '' || /^1\.0(\.\d+)?$/.test(version);

/** The version that a request names, when we do not serve it. @throws VERSION_NOT_SUPPORTED */
export const requireVersion = ({ headers, query }: FastifyRequest): void => {
  const inQuery = (query as Readonly<Record<string, unknown>>)['A2A-Version'];
  const version = String(headers['a2a-version'] ?? inQuery ?? '').trim();
  if (isKnownVersion(version)) return;
  throw new A2aError(
    'VERSION_NOT_SUPPORTED',
    `A2A ${JSON.stringify(version.slice(0, 20))} is not served here; send A2A-Version: 1.0`,
  );
};

/** Names the extension in the answer when the client asked for it. */
export const activateExtensions = ({ headers }: FastifyRequest, reply: FastifyReply): void => {
  const wanted = String(headers['a2a-extensions'] ?? '').split(',');
  if (wanted.some((uri) => uri.trim() === extensionUri))
    reply.header('a2a-extensions', extensionUri);
};

/** Of the address; an unknown role is no address of ours. */
export const roleIn = ({ params }: FastifyRequest): Role | null | undefined => {
  const { role } = params as { readonly role?: string };
  return role === undefined ? null : roles.find((known) => known === role);
};

export const contextFor = (reply: FastifyReply, role: Role | null): OperationContext => {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return { role, signal: gone.signal };
};

/** Sends the events no faster than the client reads. */
export const pump = async (
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

export interface DispatchPorts {
  readonly operations: Operations;
  readonly openStream: OpenStream;
  readonly redact: (text: string) => string;
  readonly onInternal: (error: unknown) => void;
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

export const createDispatch = ({
  operations,
  openStream,
  redact,
  onInternal,
  extendedCard,
}: DispatchPorts): Dispatch => {
  const { calls, streams } = operations;
  const streamNames = Object.keys(streams);

  const open = async (
    request: FastifyRequest,
    reply: FastifyReply,
    context: OperationContext,
    call: z.infer<typeof streamCallSchema>,
  ): Promise<FastifyReply | object> => {
    try {
      requireVersion(request);
      const { taskId, events } = await (streams[call.method] ?? missing)(call.params, context);
      const frameOf = (event: StreamResponse): string =>
        redact(JSON.stringify({ jsonrpc: '2.0', id: call.id, result: event }));
      return openStream(reply, taskId, (connection) => {
        pump(connection, events, frameOf).catch((error: unknown) => {
          onInternal(error);
          connection.end();
        });
      });
    } catch (error) {
      return errorAnswer(call.id, toA2aError(error, onInternal));
    }
  };

  return {
    methods: (request, context) => ({
      has: (method) =>
        method === extendedCardMethod ||
        Object.hasOwn(calls, method) ||
        Object.hasOwn(streams, method),
      answer: async ({ method, params, id = null }) => {
        if (Object.hasOwn(streams, method)) {
          const message = `${method} streams, so it cannot be in a batch`;
          const error = { code: envelopeErrors.invalid_request.rpc, message };
          return { jsonrpc: '2.0', id, error };
        }
        try {
          requireVersion(request);
          const result =
            method === extendedCardMethod
              ? extendedCard(request, context.role)
              : await (calls[method] ?? missing)(params, context);
          return { jsonrpc: '2.0', id, result };
        } catch (error) {
          return errorAnswer(id, toA2aError(error, onInternal));
        }
      },
    }),
    stream: (request, reply, context) => {
      const text = typeof request.body === 'string' ? request.body : '';
      if (!streamNames.some((name) => text.includes(`"${name}"`))) return null;
      const read = readJson(text);
      const call = 'value' in read ? streamCallSchema.safeParse(read.value) : null;
      if (call?.success !== true || !Object.hasOwn(streams, call.data.method)) return null;
      return open(request, reply, context, call.data);
    },
  };
};

const missing = (): never => {
  throw new A2aError('METHOD_NOT_FOUND', 'unknown method');
};
