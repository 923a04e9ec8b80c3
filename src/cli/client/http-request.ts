import { isJsonObject, textIn } from '../../machines/json.ts';
import { CallError } from './client.ts';
import { type HttpAnswer, readHttpAnswer } from './http-answer.ts';

export interface Address {
  readonly url: string;
  readonly token: string;
  /** It refused its newest configuration, and says so to anybody. */
  readonly refusesConfig?: boolean;
}

const maxAnswerBytes = 256 * 1024 * 1024;

export const connectionLost = (cause: unknown): CallError =>
  new CallError(
    'server_lost',
    "the connection to the server is lost; 'agent server status' says whether it runs, and names its log",
    {},
    cause,
  );

/** Something listens and does not answer. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';

  constructor(idleMs: number) {
    super(`no answer within ${idleMs / 1000} s`);
  }
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly idleMs: number;
  readonly body?: string;
}

const requestText = (
  { host }: URL,
  { token }: Address,
  path: string,
  { method, headers, body = '' }: HttpRequest,
): string => {
  const sent = {
    host,
    connection: 'close',
    ...headers,
    ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    ...(method === 'GET' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}`);
  if (lines.some((line) => /[^\x20-\x7e]/.test(line)))
    throw new Error('a header may have printable ASCII characters only');
  return `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
};

/**
 * The caller reads the body. Without `node:http`, which takes a fifth of `agent list` (ADR 0111).
 * @throws NoAnswerError, or when the server cannot be reached
 */
export const sendHttpRequest = async (
  address: Address,
  path: string,
  request: HttpRequest,
): Promise<HttpAnswer> => {
  const { connect } = await import('node:net');
  const { signal, idleMs } = request;
  const to = new URL(address.url);
  if (to.protocol !== 'http:') throw new Error(`the address is not http: ${to.protocol}`);
  const text = requestText(to, address, path, request);
  const socket = connect({
    host: to.hostname.replace(/^\[|\]$/g, ''),
    port: Number(to.port || 80),
    timeout: idleMs,
    ...(signal === undefined ? {} : { signal }),
  });
  socket.once('timeout', () => socket.destroy(new NoAnswerError(idleMs)));
  socket.write(text);
  return readHttpAnswer(socket, () => socket.destroy());
};

/** @throws if the body is too large */
export const readBody = async ({ body }: HttpAnswer): Promise<string> => {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body) {
    parts.push(part);
    size += part.length;
    if (size > maxAnswerBytes) throw new Error('the answer is too large');
  }
  return Buffer.concat(parts).toString('utf8');
};

/** @throws CallError */
export const getJson = async (address: Address, path: string, idleMs: number): Promise<unknown> => {
  const response = await sendHttpRequest(address, path, { method: 'GET', idleMs });
  return JSON.parse(await readBody(response));
};

/** The name of a JSON-RPC error is in `data`; other routes have it in `error`. */
export const errorInAnswer = (value: unknown): CallError | null => {
  const error = isJsonObject(value) ? value['error'] : undefined;
  if (!isJsonObject(error)) return null;
  const message = textIn(error, 'message') ?? 'the server refused without a message';
  const { code, message: _, data, ...facts } = error;
  if (!isJsonObject(data)) return new CallError(String(code), message, facts);
  const { code: name, ...details } = data;
  return new CallError(String(name), message, details);
};
