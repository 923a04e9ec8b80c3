import { StringDecoder } from 'node:string_decoder';
import { setTimeout as delay } from 'node:timers/promises';
import { isJsonObject, textIn } from '../../machines/json.ts';
import { CallError, type Frame } from './client.ts';
import {
  type Address,
  connectionLost,
  errorInAnswer,
  readBody,
  sendHttpRequest,
} from './http-request.ts';
import { createSseParser } from './sse-parser.ts';

const silenceMs = 45_000;
const reconnectMs = 500;
const reconnects = 20;

/** Frames that are not in the journal have no seq; those of no task have an empty id. */
const parsedFrame = (data: string): Frame => {
  const value: unknown = JSON.parse(data);
  const [type, timestamp] = ['type', 'timestamp'].map((key) => textIn(value, key));
  if (!isJsonObject(value) || type == null || timestamp == null || !isJsonObject(value['data']))
    throw new Error('the stream contains something that is not a frame');
  const { attempt, seq } = value;
  return {
    type,
    task_id: textIn(value, 'task_id') ?? '',
    attempt: Number(attempt),
    seq: typeof seq === 'number' ? seq : null,
    timestamp,
    data: value['data'],
  };
};

async function* connection(
  address: Address,
  path: string,
  after: string | null,
  signal: AbortSignal,
) {
  const headers: Record<string, string> = after === null ? {} : { 'last-event-id': after };
  const response = await sendHttpRequest(address, path, {
    method: 'GET',
    headers,
    signal,
    idleMs: silenceMs,
  });
  if (response.status !== 200) {
    const failure = errorInAnswer(JSON.parse(await readBody(response)));
    throw failure ?? new CallError('internal', `the server answered ${response.status}`);
  }
  const decoder = new StringDecoder('utf8');
  const parse = createSseParser();
  for await (const part of response.body)
    for (const { id, data } of parse(decoder.write(part))) yield { id, frame: parsedFrame(data) };
}

/** The id after which a new connection goes on; null when this frame does not say. */
const resumePoint = (id: string | null, { type, data }: Frame): string | null =>
  type === 'gap' && data['resume_from'] !== undefined ? String(data['resume_from']) : id;

const throwIfOver = (error: unknown, lostInARow: number): void => {
  if (error instanceof CallError) throw error;
  if (lostInARow >= reconnects) throw connectionLost(error);
};

/** Reconnects after the last frame received. */
export async function* followFrames(
  address: Address,
  taskId: string | null,
  after: number | null,
  signal: AbortSignal,
) {
  let last = after === null ? null : String(after);
  let lostInARow = 0;
  const path = taskId === null ? '/stream' : `/stream/${encodeURIComponent(taskId)}`;
  for (;;) {
    try {
      for await (const { id, frame } of connection(address, path, last, signal)) {
        lostInARow = 0;
        last = resumePoint(id, frame) ?? last;
        yield frame;
        if (frame.type === 'stream_closed' && taskId !== null) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      throwIfOver(error, lostInARow);
    }
    lostInARow += 1;
    if (lostInARow > reconnects)
      throw connectionLost(new Error('the stream ended before the attempt'));
    await delay(reconnectMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
  }
}
