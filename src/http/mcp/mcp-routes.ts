import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { errorBody, requestErrors } from '../error-table.ts';
import { callerOf } from '../gate.ts';
import { readJson } from '../json-rpc.ts';
import type { Caller } from '../people/callers.ts';
import type { SseConnection } from '../streams/sse.ts';
import type { OpenStream } from '../streams/stream-routes.ts';
import type { McpBackend } from './backend.ts';
import { isKnownVersion, type McpIdentity, type McpRequestError, mcpErrors } from './requests.ts';
import { createMcpSession, errorMessage, invalidRequest, mcpMessageSchema } from './session.ts';
import { isStatelessRequest, isStatelessVersion, statelessHttpProblem } from './stateless.ts';

export interface McpRouteOptions {
  readonly backendFor: (caller: Caller) => McpBackend;
  readonly identity: McpIdentity;
  readonly redact: (text: string) => string;
  readonly openStream: OpenStream;
  readonly onRequest: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;
}

const versionHeader = 'mcp-protocol-version';

const wantsStream = ({ headers }: FastifyRequest, text: string): boolean =>
  (headers.accept ?? '').includes('text/event-stream') && text.includes('"progressToken"');

const isMalformed = (answer: object): boolean => 'id' in answer && answer.id === null;

interface Refusal {
  readonly status: number;
  readonly body: object;
}

const statelessRefusal = (id: string | number | null, problem: McpRequestError): Refusal => ({
  status: problem.code === mcpErrors.unknownMethod ? 404 : 400,
  body: errorMessage(id, problem),
});

/**
 * Since 2026-07-28 headers repeat what the message says, and a refusal has its own status. Null for
 * a message that is right, of an older version, or unreadable.
 */
const refusedMessage = ({ headers }: FastifyRequest, text: string): Refusal | null => {
  const read = readJson(text);
  if ('problem' in read) return null;
  const isNew = isStatelessVersion(headers[versionHeader]);
  if (isNew && Array.isArray(read.value))
    return statelessRefusal(null, invalidRequest('a request holds one message'));
  const { data: message } = mcpMessageSchema.safeParse(read.value);
  if (message?.id === undefined || !(isNew || isStatelessRequest(message))) return null;
  const problem = statelessHttpProblem(headers, message);
  return problem === null ? null : statelessRefusal(message.id, problem);
};

/**
 * MCP over Streamable HTTP, one POST for each message (ADR 0096). There is no session: nothing of a
 * client is kept between its requests, so nothing has to be bounded or can be taken over. GET and
 * DELETE have no route: there is no stream that the server begins, and no session to end.
 */
export const addMcpRoutes = (app: FastifyInstance, options: McpRouteOptions): void => {
  const { backendFor, identity, redact, openStream, onRequest } = options;

  const answerOn = (stream: SseConnection, text: string, backend: McpBackend): void => {
    const session = createMcpSession({
      backend,
      identity,
      isStateless: true,
      send: (message) =>
        stream.write(`event: message\ndata: ${redact(JSON.stringify(message))}\n\n`),
    });
    stream.onClose(session.close);
    session.take(text).then(stream.end, stream.end);
  };

  const answer = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const text = typeof request.body === 'string' ? request.body : '';
    const refusal = refusedMessage(request, text);
    if (refusal !== null) return reply.code(refusal.status).send(refusal.body);
    const version = request.headers[versionHeader];
    if (version !== undefined && !isKnownVersion(version) && !isStatelessVersion(version))
      return reply
        .code(requestErrors.invalid_request)
        .send(errorBody('invalid_request', `this version of MCP is unknown (${versionHeader})`));
    const backend = backendFor(callerOf(request));
    if (wantsStream(request, text))
      return openStream(reply, null, (stream) => answerOn(stream, text, backend));
    let given: object | null = null;
    const session = createMcpSession({
      backend,
      identity,
      isStateless: true,
      send: (message) => {
        given = message;
      },
    });
    reply.raw.once('close', session.close);
    await session.take(text);
    if (given === null) return reply.code(202).send();
    return reply.code(isMalformed(given) ? requestErrors.invalid_request : 200).send(given);
  };
  for (const path of ['/mcp', '/mcp/']) app.post(path, { onRequest }, answer);
};
