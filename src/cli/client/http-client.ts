import { textIn } from '../../machines/json.ts';
import type { Client } from './client.ts';
import { callMs, createHttpCall } from './http-calls.ts';
import { sendHttpRequest, socketLost, socketTransport } from './http-request.ts';
import { type Address, errorInAnswer, readBody } from './transport.ts';

const upload = async (address: Address, body: Buffer): Promise<string> => {
  const { imageTypeOf } = await import('../../actors/files/image.ts');
  let answer: unknown;
  try {
    const headers = { 'content-type': imageTypeOf(body) ?? 'application/octet-stream' };
    const request = { method: 'POST', headers, idleMs: callMs, body } as const;
    answer = JSON.parse(await readBody(await sendHttpRequest(address, '/images', request)));
  } catch (error) {
    throw socketLost(error);
  }
  const digest = textIn(answer, 'digest');
  if (digest !== null) return digest;
  throw errorInAnswer(answer) ?? socketLost(new Error('the answer has no digest'));
};

export const createHttpClient = (address: Address): Client => ({
  live: true,
  call: createHttpCall(address, socketTransport),
  upload: (image) => upload(address, image),
  frames: async function* (taskId, after, signal) {
    const { followFrames } = await import('./http-frames.ts');
    yield* followFrames({ address, transport: socketTransport, taskId, after, signal });
  },
});
