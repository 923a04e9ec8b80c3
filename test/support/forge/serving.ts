import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Answer } from './routes.ts';

/** Serves on loopback until the test ends. @returns its origin */
export const listen = async (
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> => {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

export const read = async (
  request: IncomingMessage,
): Promise<Readonly<Record<string, unknown>>> => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const text = Buffer.concat(parts).toString();
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
};

const etagOf = (body: unknown): string =>
  `W/"${createHash('sha256').update(JSON.stringify(body)).digest('hex')}"`;

/** Sends JSON with an ETag, or 304 where it is the one that was named. */
export const send = (request: IncomingMessage, response: ServerResponse, answer: Answer): void => {
  const { status = 200, body = {}, headers = {} } = answer;
  const etag = etagOf([body, headers]);
  const isSame = request.method === 'GET' && request.headers['if-none-match'] === etag;
  response.writeHead(isSame ? 304 : status, {
    'content-type': 'application/json; charset=utf-8',
    ...headers,
    ...(request.method === 'GET' && status === 200 ? { etag } : {}),
  });
  response.end(isSame ? undefined : JSON.stringify(body));
};

/** Whether a request of git has the token; else it is told to send one. */
export const isGitAllowed = (
  token: string,
  request: IncomingMessage,
  response: ServerResponse,
): boolean => {
  const basic = `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
  if (request.headers.authorization === basic) return true;
  response.writeHead(401, { 'www-authenticate': 'Basic realm="GitHub"' }).end();
  return false;
};
