import type { FastifyInstance, FastifyReply } from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';

/** One frame. `data` is JSON text, so it never holds a line break; `id` is a number of the journal. */
export interface SseFrame {
  readonly id?: number;
  readonly event: string;
  readonly data: string;
}

export const registerSse = async (app: FastifyInstance): Promise<void> => {
  await app.register(FastifySSEPlugin, { retryDelay: 2_000 });
};

export interface SseOptions {
  readonly heartbeatMs: number;
  readonly onError: (error: unknown) => void;
  readonly onClose: () => void;
}

/** A reader that takes nothing over so many heartbeats is let go; it can come back with Last-Event-ID. */
const missedAtMost = 4;

/**
 * The only user of fastify-sse-v2. The producer is pulled no faster than the client reads, so a slow reader costs no
 * memory; it ends with its socket (the plugin alone would leave it running) and never throws into the plugin.
 */
export const streamEvents = (
  reply: FastifyReply,
  produce: (signal: AbortSignal) => AsyncGenerator<SseFrame>,
  { heartbeatMs, onError, onClose }: SseOptions,
): void => {
  const abort = new AbortController();
  const frames = produce(abort.signal);
  let missed = 0;
  let written = 0;
  const heartbeat = setInterval(() => {
    const now = reply.raw.socket?.bytesWritten ?? 0;
    missed = reply.raw.writableNeedDrain && now === written ? missed + 1 : 0;
    written = now;
    if (missed >= missedAtMost) reply.raw.destroy();
    else if (!reply.raw.writableNeedDrain) reply.raw.write(':\n\n');
  }, heartbeatMs);
  reply.raw.once('close', () => {
    clearInterval(heartbeat);
    onClose();
    abort.abort();
    frames.return(undefined).catch(onError);
  });
  reply.sse(guarded(frames, onError));
};

async function* guarded(frames: AsyncGenerator<SseFrame>, onError: (error: unknown) => void) {
  try {
    for await (const { id, event, data } of frames)
      yield { ...(id === undefined ? {} : { id: String(id) }), event, data };
  } catch (error) {
    onError(error);
  }
}
