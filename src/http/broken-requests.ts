import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { httpErrorOf, restMediaType, undecodedPath } from './a2a/errors.ts';
import { errorBody, requestErrors } from './error-table.ts';
import { answerHeaders } from './gate.ts';

const parserRefusals: Readonly<Record<string, readonly [keyof typeof requestErrors, string]>> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'the headers of a request hold at most 16 KiB'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['payload_too_large', 'the extensions of a chunk are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'the request did not arrive in time'],
};
const unreadableRequest = ['invalid_request', 'this is not an HTTP/1.1 request'] as const;

/** Answers bytes that are no HTTP request with a JSON error, and closes the connection. */
export const answerBrokenBytes = ({ code }: { readonly code?: string }, socket: Socket): void => {
  if (code === 'ECONNRESET' || !socket.writable) return;
  const [name, message] = parserRefusals[code ?? ''] ?? unreadableRequest;
  const status = requestErrors[name];
  const body = JSON.stringify(errorBody(name, message));
  const headers = Object.entries({
    ...answerHeaders,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }).map(([key, value]) => `${key}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('')}\r\n${body}`);
  socket.destroySoon();
};

const isRest = /^(?:\/agents\/[^/]*)?\/a2a\/rest\//;

/** Fastify runs no hook for a path that cannot be decoded. */
export const answerBrokenPath = (
  _error: Error,
  { raw }: FastifyRequest,
  reply: FastifyReply,
): FastifyReply => {
  reply.headers(answerHeaders);
  if (isRest.test(raw.url ?? '')) {
    const { code, body } = httpErrorOf(undecodedPath());
    return reply.code(code).type(restMediaType).send(body);
  }
  return reply
    .code(requestErrors.invalid_request)
    .send(errorBody('invalid_request', 'the path of the request cannot be decoded'));
};
