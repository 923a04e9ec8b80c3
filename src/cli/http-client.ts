import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { CallError, type Client, type Frame } from './client.ts';
import { isJson, textIn } from './json.ts';
import { createSseParser } from './sse-parser.ts';

export interface Address {
  readonly url: string;
  readonly token: string;
}

const callMs = 60_000;
const silenceMs = 45_000;
const reconnectMs = 500;
const reconnects = 20;
const maxAnswerBytes = 256 * 1024 * 1024;

const lost = (cause: unknown): CallError =>
  new CallError(
    'server_lost',
    'the connection to the server is lost; see the log with: agent server status',
    {},
    cause,
  );

const open = (
  { url, token }: Address,
  path: string,
  options: { method: string; headers?: Record<string, string>; signal?: AbortSignal; idleMs: number },
  body?: string,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { method, headers = {}, signal, idleMs } = options;
    const asked: ClientRequest = request(new URL(path, url), {
      method,
      agent: false,
      timeout: idleMs,
      headers: { ...headers, ...(token === '' ? {} : { authorization: `Bearer ${token}` }) },
      ...(signal === undefined ? {} : { signal }),
    });
    asked.once('response', resolve);
    asked.once('timeout', () => asked.destroy(new Error(`no answer within ${idleMs / 1000} s`)));
    asked.once('error', reject);
    asked.end(body);
  });

const readAll = async (response: IncomingMessage): Promise<string> => {
  response.setEncoding('utf8');
  let text = '';
  for await (const chunk of response) {
    text += chunk;
    if (text.length > maxAnswerBytes) throw new Error('the answer is too large');
  }
  return text;
};

/** One request to a path that answers JSON. @throws CallError */
export const getJson = async (address: Address, path: string, idleMs: number): Promise<unknown> => {
  const response = await open(address, path, { method: 'GET', idleMs });
  return JSON.parse(await readAll(response));
};

/** The error in an answer: of JSON-RPC, with its name in `data`, or of a route. */
const failureOf = (value: unknown): CallError | null => {
  const error = isJson(value) ? value['error'] : undefined;
  if (!isJson(error)) return null;
  const message = textIn(error, 'message') ?? 'the server refused without a word';
  const { code, message: _, data, ...facts } = error;
  if (!isJson(data)) return new CallError(String(code), message, facts);
  const { code: name, ...details } = data;
  return new CallError(String(name), message, details);
};

/** A frame as the server sends it; those that the journal does not hold have no seq. */
const frameOf = (data: string): Frame => {
  const value: unknown = JSON.parse(data);
  const [type, taskId, timestamp] = ['type', 'task_id', 'timestamp'].map((key) => textIn(value, key));
  if (!isJson(value) || type == null || taskId == null || timestamp == null || !isJson(value['data']))
    throw new Error('the stream holds something that is no frame');
  const { attempt, seq } = value;
  return {
    type,
    task_id: taskId,
    attempt: Number(attempt),
    seq: typeof seq === 'number' ? seq : null,
    timestamp,
    data: value['data'],
  };
};

const call = async (address: Address, method: string, params: object): Promise<unknown> => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  let answer: unknown;
  try {
    const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
    const response = await open(address, '/a2a/execute', { method: 'POST', headers, idleMs: callMs }, body);
    answer = JSON.parse(await readAll(response));
  } catch (error) {
    throw lost(error);
  }
  const failure = failureOf(answer);
  if (failure !== null) throw failure;
  if (!isJson(answer) || !('result' in answer)) throw lost(new Error('the answer has no result'));
  return answer['result'];
};

async function* connection(address: Address, path: string, after: number | null, signal: AbortSignal) {
  const headers: Record<string, string> = after === null ? {} : { 'last-event-id': String(after) };
  const response = await open(address, path, { method: 'GET', headers, signal, idleMs: silenceMs });
  if (response.statusCode !== 200) {
    const failure = failureOf(JSON.parse(await readAll(response)));
    throw failure ?? new CallError('internal', `the server answered ${response.statusCode}`);
  }
  response.setEncoding('utf8');
  const parse = createSseParser();
  for await (const chunk of response) for (const { data } of parse(String(chunk))) yield frameOf(data);
}

/** Follows a task over lost connections: each one goes on after the last frame that arrived. */
async function* frames(address: Address, taskId: string, after: number | null, signal: AbortSignal) {
  let last = after;
  let lostInARow = 0;
  const path = `/stream/${encodeURIComponent(taskId)}`;
  for (;;) {
    try {
      for await (const frame of connection(address, path, last, signal)) {
        lostInARow = 0;
        if (frame.seq !== null) last = frame.seq;
        yield frame;
        if (frame.type === 'stream_closed') return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof CallError) throw error;
      if (lostInARow >= reconnects) throw lost(error);
    }
    lostInARow += 1;
    if (lostInARow > reconnects) throw lost(new Error('the stream ended without an end'));
    await delay(reconnectMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
  }
}

/** The client of a running server. */
export const createHttpClient = (address: Address): Client => ({
  live: true,
  call: (method, params) => call(address, method, params),
  frames: (taskId, after, signal) => frames(address, taskId, after, signal),
});
