import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FastifySSEPlugin } from 'fastify-sse-v2';
import type { Answer } from '../../actors/store/port.ts';

/**
 * Frames for many connections: as bytes, and as an HTTP/1.1 chunk that needs no further encoding.
 */
export interface SharedFrames {
  readonly plain: Buffer;
  readonly chunk: Buffer;
  /** The frames that came next, and both together: other connections share them, too. */
  joined: { readonly next: SharedFrames; readonly both: SharedFrames } | null;
}

const shareBytes = (plain: Buffer): SharedFrames => {
  return {
    plain,
    joined: null,
    chunk: Buffer.concat([
      Buffer.from(`${plain.length.toString(16)}\r\n`),
      plain,
      Buffer.from('\r\n'),
    ]),
  };
};

export const shareFrames = (frames: string): SharedFrames => shareBytes(Buffer.from(frames));

const joinFrames = (frames: SharedFrames, next: SharedFrames): SharedFrames => {
  if (frames.joined?.next === next) return frames.joined.both;
  const both = shareBytes(Buffer.concat([frames.plain, next.plain]));
  frames.joined = { next, both };
  return both;
};

/**
 * An open stream of server-sent events. Its methods never throw; writing after the client left does
 * nothing.
 */
export interface SseConnection {
  write(frames: string): void;
  /**
   * Writes shared frames in a quarter less time (ADR 0108), the first at once, then all of 5 ms or
   * more together.
   */
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
const gatherMs = 5;
const gatherAtMostMs = 100;

interface OpenConnection extends SseConnection {
  beat(): void;
  checkRights(): void;
  /** Writes the shared frames of the last 5 ms. @returns false when there were none */
  writeGathered(): boolean;
}

const untilEnded = (ended: Promise<void>): AsyncIterable<never> => ({
  [Symbol.asyncIterator]: () => ({
    next: () => ended.then(() => ({ done: true, value: undefined })),
  }),
});

/** Shared frames of one response: the first are written at once, the next are gathered. */
const createSharedWriter = (raw: ServerResponse, isWritable: () => boolean) => {
  let isGathering = false;
  let gathered: SharedFrames | null = null;
  const writeNow = ({ plain, chunk }: SharedFrames): void => {
    if (!isWritable()) return;
    const { socket } = raw;
    // Equal lengths mean that the socket has every earlier write of the response.
    if (raw.chunkedEncoding && socket !== null && socket.writableLength === raw.writableLength)
      socket.write(chunk);
    else raw.write(plain);
  };
  const flush = (): boolean => {
    const frames = gathered;
    gathered = null;
    if (frames !== null) writeNow(frames);
    return frames !== null;
  };
  return {
    write: (frames: SharedFrames): 'first' | 'gathered' => {
      if (isGathering) {
        gathered = gathered === null ? frames : joinFrames(gathered, frames);
        return 'gathered';
      }
      isGathering = true;
      writeNow(frames);
      return 'first';
    },
    flush,
    writeGathered: (): boolean => {
      isGathering = flush();
      return isGathering;
    },
    buffered: () => gathered?.plain.length ?? 0,
  };
};

/**
 * The plugin opens and ends the response. Frames bypass it: it would encode each one for every
 * reader, sends no heartbeat, and does not end with its socket (docs/adr/0006).
 */
const openConnection = (
  reply: FastifyReply,
  isAllowed: () => Answer<boolean>,
  onFirst: (connection: OpenConnection) => void,
): OpenConnection => {
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
  // nginx would hold the frames back until its buffer is full.
  raw.setHeader('x-accel-buffering', 'no');
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
  const shared = createSharedWriter(raw, isWritable);
  const end = (): void => {
    shared.flush();
    ended = true;
    finish();
  };
  const checkRights = (): void => {
    if (ended) return;
    const endUnless = (allowed: boolean): void => {
      if (!allowed) end();
    };
    const answer = isAllowed();
    // A store that is away takes no right; the next heartbeat asks again.
    if (answer instanceof Promise) answer.then(endUnless, () => {});
    else endUnless(answer);
  };
  const connection: OpenConnection = {
    write: (frames) => {
      shared.flush();
      if (isWritable()) raw.write(frames);
    },
    share: (frames) => {
      if (shared.write(frames) === 'first') onFirst(connection);
    },
    writeGathered: shared.writeGathered,
    buffered: () => raw.writableLength + shared.buffered(),
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
  return connection;
};

/**
 * Writes what each connection gathered, 5 ms after its first frames and then again; later where to
 * write takes longer, so that many readers take half of the time at most.
 */
const createGathering = () => {
  let gathering: OpenConnection[] = [];
  let timer: NodeJS.Timeout | undefined;
  const write = (): void => {
    const began = performance.now();
    timer = undefined;
    gathering = gathering.filter((connection) => connection.writeGathered());
    const took = performance.now() - began;
    const pauseMs = Math.max(gatherMs, Math.min(took, gatherAtMostMs));
    if (gathering.length > 0) timer = setTimeout(write, pauseMs);
  };
  return {
    add: (connection: OpenConnection): void => {
      gathering.push(connection);
      timer ??= setTimeout(write, gatherMs);
    },
    close: (): void => clearTimeout(timer),
  };
};

/**
 * The only user of fastify-sse-v2. It sends heartbeats, and ends all streams when the server stops.
 * `isAllowed`: a stream whose request lost its right ends at the next heartbeat.
 */
export const createSse = async (
  app: FastifyInstance,
  heartbeatMs: number,
  isAllowed: (request: FastifyRequest) => Answer<boolean>,
): Promise<Sse> => {
  await app.register(FastifySSEPlugin, { retryDelay: 2_000 });
  const connections = new Set<OpenConnection>();
  const heartbeat = setInterval(() => {
    for (const connection of connections) connection.beat();
  }, heartbeatMs);
  const gathering = createGathering();
  app.addHook('onClose', async () => {
    clearInterval(heartbeat);
    gathering.close();
  });
  return {
    open: (reply) => {
      const connection = openConnection(reply, () => isAllowed(reply.request), gathering.add);
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
