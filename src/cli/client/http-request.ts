import { cliAgent } from '../../http/people/names.ts';
import type { CallError } from './client.ts';
import {
  type Address,
  connectionLost,
  type HttpAnswer,
  type HttpRequest,
  readBody,
  type Transport,
} from './transport.ts';

interface Bytes {
  /** Without its end. @throws when it is too long or cut */
  line(): Promise<string>;
  /** The next of `atMost`; null when the connection has ended. */
  some(atMost: number): Promise<Buffer | null>;
}

const maxLineBytes = 64 * 1024;
const maxHeaderLines = 200;

const notHttp = (): Error => new Error('the answer is not HTTP');
const cutAnswerError = (): Error => new Error('the answer was cut');

const createBytes = (source: AsyncIterator<Buffer>): Bytes => {
  let held: Buffer = Buffer.alloc(0);
  const more = async (): Promise<boolean> => {
    const { value, done } = await source.next();
    if (done === true) return false;
    held = held.length === 0 ? value : Buffer.concat([held, value]);
    return true;
  };
  const take = (count: number): Buffer => {
    const taken = held.subarray(0, count);
    held = held.subarray(count);
    return taken;
  };
  return {
    line: async () => {
      for (;;) {
        const end = held.indexOf('\r\n');
        if (end >= 0) return take(end + 2).toString('latin1', 0, end);
        if (held.length > maxLineBytes) throw new Error('a header of the answer is too long');
        if (!(await more())) throw cutAnswerError();
      }
    },
    some: async (atMost) => (held.length > 0 || (await more()) ? take(atMost) : null),
  };
};

const readHeaders = async (bytes: Bytes): Promise<ReadonlyMap<string, string>> => {
  const headers = new Map<string, string>();
  for (let line = await bytes.line(); line !== ''; line = await bytes.line()) {
    if (headers.size === maxHeaderLines) throw new Error('the answer has too many headers');
    const colon = line.indexOf(':');
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return headers;
};

async function* readExactly(bytes: Bytes, size: number): AsyncGenerator<Buffer, void> {
  for (let left = size; left > 0; ) {
    const part = await bytes.some(left);
    if (part === null) throw cutAnswerError();
    left -= part.length;
    yield part;
  }
}

async function* readChunks(bytes: Bytes): AsyncGenerator<Buffer, void> {
  for (;;) {
    const line = await bytes.line();
    if (!/^[0-9a-f]{1,8}\s*(;|$)/i.test(line)) throw notHttp();
    const size = Number.parseInt(line, 16);
    if (size === 0) return;
    yield* readExactly(bytes, size);
    if ((await bytes.line()) !== '') throw notHttp();
  }
}

async function* readToEnd(bytes: Bytes): AsyncGenerator<Buffer, void> {
  for (let part = await bytes.some(Infinity); part !== null; part = await bytes.some(Infinity))
    yield part;
}

const decodeBody = (bytes: Bytes, headers: ReadonlyMap<string, string>) => {
  if (/\bchunked\s*$/i.test(headers.get('transfer-encoding') ?? '')) return readChunks(bytes);
  const length = headers.get('content-length');
  if (length === undefined) return readToEnd(bytes);
  if (!/^\d{1,15}$/.test(length)) throw notHttp();
  return readExactly(bytes, Number(length));
};

/** Closes the connection when the body is read, and when it is not HTTP. */
const readHttpAnswer = async (
  connection: AsyncIterable<Buffer>,
  close: () => void,
): Promise<HttpAnswer> => {
  const bytes = createBytes(connection[Symbol.asyncIterator]());
  try {
    const status = /^HTTP\/1\.[01] (\d{3})\b/.exec(await bytes.line())?.[1];
    if (status === undefined) throw notHttp();
    const body = decodeBody(bytes, await readHeaders(bytes));
    const closing = async function* () {
      try {
        yield* body;
      } finally {
        close();
      }
    };
    return { status: Number(status), body: closing() };
  } catch (error) {
    close();
    throw error;
  }
};

/** Something listens and does not answer. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';

  constructor(idleMs: number) {
    super(`no answer within ${idleMs / 1000} s`);
  }
}

const requestHead = (
  { host }: URL,
  { token }: Address,
  path: string,
  { method, headers, body = '' }: HttpRequest,
): string => {
  const sent = {
    host,
    connection: 'close',
    'user-agent': cliAgent,
    ...headers,
    ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    ...(method === 'GET' ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}`);
  if (lines.some((line) => /[^\x20-\x7e]/.test(line)))
    throw new Error('a header may have printable ASCII characters only');
  return `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
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
  const head = requestHead(to, address, path, request);
  const socket = connect({
    host: to.hostname.replace(/^\[|\]$/g, ''),
    port: Number(to.port || 80),
    timeout: idleMs,
    // One of its own: a connection that is refused leaves its listener on the signal.
    signal: signal === undefined ? undefined : AbortSignal.any([signal]),
  });
  socket.once('timeout', () => socket.destroy(new NoAnswerError(idleMs)));
  const { body = '' } = request;
  socket.write(typeof body === 'string' ? `${head}${body}` : head);
  if (typeof body !== 'string') socket.write(body);
  return readHttpAnswer(socket, () => socket.destroy());
};

const lostText =
  "the connection to the server is lost; 'agent server status' says whether it runs, and names its log";

export const socketLost = (cause: unknown): CallError => connectionLost(lostText, cause);

/** Over a connection of its own for each request. */
export const socketTransport = {
  send: sendHttpRequest,
  lostText: () => lostText,
} satisfies Transport;

export const getJson = async (address: Address, path: string, idleMs: number): Promise<unknown> => {
  const response = await sendHttpRequest(address, path, { method: 'GET', idleMs });
  return JSON.parse(await readBody(response));
};
