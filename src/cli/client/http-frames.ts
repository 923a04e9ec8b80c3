import { isJsonObject, textIn } from '../../machines/json.ts';
import { CallError, type Frame } from './client.ts';
import { createSseParser } from './sse-parser.ts';
import {
  type Address,
  connectionLost,
  errorInAnswer,
  readBody,
  type Transport,
} from './transport.ts';

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

export interface FramesWanted {
  readonly address: Address;
  readonly transport: Transport;
  /** Null: of every task. */
  readonly taskId: string | null;
  /** Only frames after this `seq`; null: from now on. */
  readonly after: number | null;
  readonly signal: AbortSignal;
}

async function* connection(
  { address, transport, taskId, signal }: FramesWanted,
  after: string | null,
) {
  const headers: Record<string, string> = after === null ? {} : { 'last-event-id': after };
  const path = taskId === null ? '/stream' : `/stream/${encodeURIComponent(taskId)}`;
  const response = await transport.send(address, path, {
    method: 'GET',
    headers,
    signal,
    idleMs: silenceMs,
  });
  if (response.status !== 200) {
    const failure = errorInAnswer(JSON.parse(await readBody(response)));
    throw failure ?? new CallError('internal', `the server answered ${response.status}`);
  }
  const decoder = new TextDecoder();
  const parse = createSseParser();
  for await (const part of response.body)
    for (const { id, data } of parse(decoder.decode(part, { stream: true })))
      yield { id, frame: parsedFrame(data) };
}

/** Resolves after some time, or when the signal aborts. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });

/** The id after which a new connection goes on; null when this frame does not say. */
const resumePoint = (id: string | null, { type, data }: Frame): string | null =>
  type === 'gap' && data['resume_from'] !== undefined ? String(data['resume_from']) : id;

/** Reconnects after the last frame received. @throws CallError */
export async function* followFrames(wanted: FramesWanted): AsyncGenerator<Frame, void> {
  const { address, transport, taskId, after, signal } = wanted;
  let last = after === null ? null : String(after);
  let lostInARow = 0;
  for (;;) {
    let cause: unknown = new Error('the stream ended before the attempt');
    try {
      for await (const { id, frame } of connection(wanted, last)) {
        lostInARow = 0;
        last = resumePoint(id, frame) ?? last;
        yield frame;
        if (frame.type === 'stream_closed' && taskId !== null) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof CallError) throw error;
      cause = error;
    }
    lostInARow += 1;
    if (lostInARow > reconnects) throw connectionLost(transport.lostText(address), cause);
    await pause(reconnectMs, signal);
    if (signal.aborted) return;
  }
}
