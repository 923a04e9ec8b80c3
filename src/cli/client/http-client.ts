import { isJsonObject, textIn } from '../../machines/json.ts';
import type { Client, MethodName, Params, Result } from './client.ts';
import {
  type Address,
  connectionLost,
  errorInAnswer,
  readBody,
  sendHttpRequest,
} from './http-request.ts';

const callMs = 60_000;
/** Its tests have limits of their own (`merge.timeout_seconds`). */
const mergeMs = 3 * 3_600_000;

const call = async <Name extends MethodName>(
  address: Address,
  method: Name,
  params: Params<Name>,
): Promise<Result<Name>> => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  let answer: unknown;
  try {
    const headers = { 'content-type': 'application/json' };
    const request = {
      method: 'POST',
      headers,
      idleMs: method === 'merge' || method === 'merge_many' ? mergeMs : callMs,
      body,
    } as const;
    answer = JSON.parse(await readBody(await sendHttpRequest(address, '/a2a/execute', request)));
  } catch (error) {
    throw connectionLost(error);
  }
  const failure = errorInAnswer(answer);
  if (failure !== null) throw failure;
  if (!isJsonObject(answer) || !('result' in answer))
    throw connectionLost(new Error('the answer has no result'));
  // Our own server answers as it describes.
  return answer['result'] as Result<Name>;
};

const upload = async (address: Address, body: Buffer): Promise<string> => {
  const { imageTypeOf } = await import('../../actors/files/image.ts');
  let answer: unknown;
  try {
    const headers = { 'content-type': imageTypeOf(body) ?? 'application/octet-stream' };
    const request = { method: 'POST', headers, idleMs: callMs, body } as const;
    answer = JSON.parse(await readBody(await sendHttpRequest(address, '/images', request)));
  } catch (error) {
    throw connectionLost(error);
  }
  const digest = textIn(answer, 'digest');
  if (digest !== null) return digest;
  throw errorInAnswer(answer) ?? connectionLost(new Error('the answer has no digest'));
};

export const createHttpClient = (address: Address): Client => ({
  live: true,
  call: (method, params) => call(address, method, params),
  upload: (image) => upload(address, image),
  frames: async function* (taskId, after, signal) {
    const { followFrames: frames } = await import('./http-frames.ts');
    yield* frames(address, taskId, after, signal);
  },
});
