import type { ClientRequest, IncomingMessage } from 'node:http';
import { isJsonObject, textIn } from '../../machines/json.ts';
import { CallError } from './client.ts';

export interface Address {
  readonly url: string;
  readonly token: string;
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

/** The caller reads the answer. @throws NoAnswerError, or when the server cannot be reached */
export const sendHttpRequest = async (
  { url, token }: Address,
  path: string,
  options: {
    method: string;
    headers?: Record<string, string>;
    signal?: AbortSignal;
    idleMs: number;
  },
  body?: string,
): Promise<IncomingMessage> => {
  // Loading it takes longer than all of our own code, and many commands need it not.
  const { request } = await import('node:http');
  return new Promise((resolve, reject) => {
    const { method, headers = {}, signal, idleMs } = options;
    const asked: ClientRequest = request(new URL(path, url), {
      method,
      agent: false,
      timeout: idleMs,
      headers: { ...headers, ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
      ...(signal === undefined ? {} : { signal }),
    });
    asked.once('response', resolve);
    asked.once('timeout', () => asked.destroy(new NoAnswerError(idleMs)));
    asked.once('error', reject);
    asked.end(body);
  });
};

/** @throws if the body is too large */
export const readBody = async (response: IncomingMessage): Promise<string> => {
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) {
    text += chunk;
    if (text.length > maxAnswerBytes) throw new Error('the answer is too large');
  }
  return text;
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
