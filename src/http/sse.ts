import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';

/**
 * Frames for many connections: as bytes, and as an HTTP/1.1 chunk that needs no further encoding.
 */
export interface SharedFrames {
  readonly plain: Buffer;
  readonly chunk: Buffer;
}

export const shareFrames = (frames: string): SharedFrames => {
  const plain = Buffer.from(frames);
  return {
    plain,
    chunk: Buffer.concat([
      Buffer.from(`${plain.length.toString(16)}\r\n`),
      plain,
      Buffer.from('\r\n'),
    ]),
  };
};

/**
 * An open stream of server-sent events. Its methods never throw; writing after the client left does
 * nothing.
 */
export interface SseConnection {
  write(frames: string): void;
  /** Writes shared frames in a quarter less time (ADR 0108). */
  share(frames: SharedFrames): void;
  buffered(): number;
  /** Resolves when the client has read everything, or is gone. */
  drained(): Promise<void>;
  end(): void;
  onClose(listener: () => void): void;
  readonly closed: () => boolean;
}

export interface Sse {
  open(reply: FastifyReply): SseConnection;
  /** Asks each stream now whether it is still allowed. */
  checkRights(): void;
  /** Ends every stream with a comment that the server stops; waits at most 1 s for slow clients. */
  endAll(): Promise<void>;
}

/**
 * A reader that reads nothing for this many heartbeats is disconnected; it can resume with
 * Last-Event-ID.
 */
const missedAtMost = 4;
const closeWaitMs = 1_000;

interface OpenConnection extends SseConnection {
  beat(): void;
  checkRights(): void;
}

const untilEnded = (ended: Promise<void>): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({
    next: () => ended.then(() => ({ done: true, value: undefined })),
  }),
});

/**
 * The plugin opens and ends the response. Frames bypass it: it would encode each one for every
 * reader, sends no heartbeat, and does not end with its socket (docs/adr/0006).
 */
const openConnection = (reply: FastifyReply, isAllowed: () => boolean): OpenConnection => {
  const { raw } = reply;
  let finish = (): void => {};
  let ended = false;
  let missed = 0;
  let written = 0;
  let waiting: (() => void)[] = [];
  const wake = (): void => {
    const woken = waiting;
    waiting = [];
    for (const resolve of woken) resolve();
  };
  reply.sse(
    untilEnded(
      new Promise((resolve) => {
        finish = resolve;
      }),
    ),
  );
  raw.on('drain', wake);
  raw.once('close', () => {
    wake();
    finish();
  });
  const isWritable = (): boolean => !ended && !raw.destroyed;
  const end = (): void => {
    ended = true;
    finish();
  };
  const checkRights = (): void => {
    if (!ended && !isAllowed()) end();
  };
  return {
    write: (frames) => {
      if (isWritable()) raw.write(frames);
    },
    share: ({ plain, chunk }) => {
      if (!isWritable()) return;
      const { socket } = raw;
      // Equal lengths mean that the socket has every earlier write of the response.
      if (raw.chunkedEncoding && socket !== null && socket.writableLength === raw.writableLength)
        socket.write(chunk);
      else raw.write(plain);
    },
    buffered: () => raw.writableLength,
    drained: () =>
      new Promise((resolve) => {
        if (!raw.writableNeedDrain || raw.destroyed) return resolve();
        waiting.push(resolve);
      }),
    end,
    checkRights,
    onClose: (listener) => {
      if (raw.destroyed) listener();
      else raw.once('close', listener);
    },
    closed: () => raw.destroyed,
    beat: () => {
      checkRights();
      const now = raw.socket?.bytesWritten ?? 0;
      missed = raw.writableLength > 0 && now === written ? missed + 1 : 0;
      written = now;
      if (missed >= missedAtMost) raw.destroy();
      else if (isWritable() && !raw.writableNeedDrain) raw.write(':\n\n');
    },
  };
};

/**
 * The only user of fastify-sse-v2. It sends heartbeats, and ends all streams when the server stops.
 * `isAllowed`: a stream whose request lost its right ends at the next heartbeat.
 */
export const createSse = async (
  app: FastifyInstance,
  heartbeatMs: number,
  isAllowed: (request: FastifyRequest) => boolean,
): Promise<Sse> => {
  await app.register(FastifySSEPlugin, { retryDelay: 2_000 });
  const connections = new Set<OpenConnection>();
  const heartbeat = setInterval(() => {
    for (const connection of connections) connection.beat();
  }, heartbeatMs);
  app.addHook('onClose', async () => clearInterval(heartbeat));
  return {
    open: (reply) => {
      const connection = openConnection(reply, () => isAllowed(reply.request));
      connections.add(connection);
      connection.onClose(() => connections.delete(connection));
      return connection;
    },
    checkRights: () => {
      for (const connection of connections) connection.checkRights();
    },
    endAll: async () => {
      const all = [...connections].map(
        (connection) =>
          new Promise<void>((resolve) => {
            connection.onClose(resolve);
            connection.write(': the server stops; reconnect with Last-Event-ID\n\n');
            connection.end();
          }),
      );
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, closeWaitMs);
      });
      await Promise.race([Promise.all(all), late]);
      clearTimeout(timer);
    },
  };
};
