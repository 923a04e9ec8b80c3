import { isJsonObject, textIn } from '../../machines/json.ts';
import { CallError } from './client.ts';

/** The answer of a server. */
export interface HttpAnswer {
  readonly status: number;
  /** To be read to its end, or left: both free the connection. @throws when it is cut */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Address {
  readonly url: string;
  readonly token: string;
  /** It refused its newest configuration, and says so to anybody. */
  readonly refusesConfig?: boolean;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** The longest silence. */
  readonly idleMs: number;
  readonly body?: string | Uint8Array;
}

/**
 * Sends requests: the CLI over a socket (`http-request.ts`), programs with fetch
 * (`public-client.ts`).
 */
export interface Transport {
  /** The caller reads the body. @throws when the server cannot be reached */
  send(address: Address, path: string, request: HttpRequest): Promise<HttpAnswer>;
  /** What to tell a person when a connection is lost. */
  readonly lostText: (address: Address) => string;
}

export const connectionLost = (message: string, cause: unknown): CallError =>
  new CallError('server_lost', message, {}, cause);

const maxAnswerBytes = 256 * 1024 * 1024;

/** @throws if the body is too large */
export const readBody = async ({ body }: HttpAnswer): Promise<string> => {
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let size = 0;
  for await (const part of body) {
    parts.push(decoder.decode(part, { stream: true }));
    size += part.length;
    if (size > maxAnswerBytes) throw new Error('the answer is too large');
  }
  return parts.join('') + decoder.decode();
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
