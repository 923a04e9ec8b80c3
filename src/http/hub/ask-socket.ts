import { request } from 'node:http';
import { parseJson } from '../../machines/json.ts';

export interface SocketAsk {
  readonly socketPath: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** What the server expects in Host. */
  readonly host?: string;
  readonly token?: string;
  readonly body?: object;
  /** The longest wait for the whole answer. */
  readonly withinMs: number;
}

export interface SocketAnswer {
  readonly status: number;
  readonly body: unknown;
}

const answerBytesAtMost = 1024 * 1024;

/** Asks a program of this person over a Unix socket. @throws when it does not answer */
export const askSocket = (ask: SocketAsk): Promise<SocketAnswer> =>
  new Promise((resolve, reject) => {
    const { socketPath, method, path, host = 'localhost', token, body } = ask;
    const text = body === undefined ? '' : JSON.stringify(body);
    const sent = request({
      socketPath,
      method,
      path,
      agent: false,
      signal: AbortSignal.timeout(ask.withinMs),
      headers: {
        host,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
        'content-length': Buffer.byteLength(text),
      },
    });
    sent.once('error', reject);
    sent.once('response', (answer) => {
      const parts: Buffer[] = [];
      let size = 0;
      answer.on('data', (part: Buffer) => {
        size += part.length;
        if (size > answerBytesAtMost) answer.destroy(new Error('the answer is too large'));
        else parts.push(part);
      });
      answer.once('error', reject);
      answer.once('end', () => {
        const read = Buffer.concat(parts).toString('utf8');
        resolve({ status: answer.statusCode ?? 0, body: parseJson(read) });
      });
    });
    sent.end(text);
  });
