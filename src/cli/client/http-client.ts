import type { Client } from './client.ts';
import { type Address, failureOf, lost, open, readAll } from './http-request.ts';
import { isJson } from './json.ts';

const callMs = 60_000;

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

/** The client of a running server. */
export const createHttpClient = (address: Address): Client => ({
  live: true,
  call: (method, params) => call(address, method, params),
  frames: async function* (taskId, after, signal) {
    const { frames } = await import('./http-frames.ts');
    yield* frames(address, taskId, after, signal);
  },
});
