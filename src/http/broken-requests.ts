import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { errorBody, refusedRequests } from './error-table.ts';
import { answerHeaders } from './gate.ts';

/** What the parser of HTTP says in words of its own. */
const refusals: Readonly<Record<string, readonly [keyof typeof refusedRequests, string]>> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'the headers of a request hold at most 16 KiB'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['payload_too_large', 'the extensions of a chunk are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'the request did not arrive in time'],
};
const unreadable = ['invalid_request', 'this is not a request of HTTP/1.1'] as const;

/** Answers bytes that never became a request, in the form of every other error, and closes the connection. */
export const answerBrokenBytes = ({ code }: { readonly code?: string }, socket: Socket): void => {
  if (code === 'ECONNRESET' || !socket.writable) return;
  const [name, message] = refusals[code ?? ''] ?? unreadable;
  const status = refusedRequests[name];
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

/** Answers a path that cannot be decoded, which Fastify keeps from every hook. */
export const answerBrokenPath = (_error: Error, _request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  reply
    .code(refusedRequests.invalid_request)
    .headers(answerHeaders)
    .send(errorBody('invalid_request', 'the path of the request cannot be decoded'));
