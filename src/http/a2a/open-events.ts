import type { FastifyReply } from 'fastify';
import type { SseConnection } from '../sse.ts';
import type { ReserveStream } from '../stream-routes.ts';
import type { StreamResponse } from './protocol.ts';

export interface OpenEventsPorts {
  readonly reserveStream: ReserveStream;
  readonly onInternal: (error: unknown) => void;
}

/** Sends the events no faster than the client reads. */
const pump = async (
  connection: SseConnection,
  events: AsyncGenerator<StreamResponse>,
  frameOf: (event: StreamResponse) => string,
): Promise<void> => {
  for await (const event of events) {
    if (connection.closed()) break;
    connection.write(`data: ${frameOf(event)}\n\n`);
    await connection.drained();
  }
  connection.end();
};

/**
 * Takes a place among the streams before anything is changed: a client that is refused may send its
 * message again. Rejects with what `start` rejects with, before any event.
 */
export const openEvents = async (
  { reserveStream, onInternal }: OpenEventsPorts,
  reply: FastifyReply,
  start: () => Promise<{ readonly events: AsyncGenerator<StreamResponse> }>,
  frameOf: (event: StreamResponse) => string,
): Promise<FastifyReply> => {
  const reserved = reserveStream(reply);
  if ('refused' in reserved) return reserved.refused;
  const started = await start().catch((error: unknown) => {
    reserved.release();
    throw error;
  });
  return reserved.open((connection) => {
    pump(connection, started.events, frameOf).catch((error: unknown) => {
      onInternal(error);
      connection.end();
    });
  });
};
