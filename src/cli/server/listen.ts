import { chmodSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { hasCode } from '../../actors/files/error-code.ts';

/**
 * Limits the open connections of all servers together. A new connection beyond the limit closes the
 * longest idle one, so that idle sockets keep nobody out; when all are busy, the new one is closed.
 */
const createConnectionLimit = (atMost: number) => {
  /** The longest idle socket comes first. */
  const idle = new Set<Socket>();
  const open = new Set<Socket>();

  const admit = (socket: Socket): void => {
    open.add(socket);
    idle.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      idle.delete(socket);
    });
    if (open.size <= atMost) return;
    const [longest = socket] = idle;
    open.delete(longest);
    idle.delete(longest);
    longest.destroy();
  };

  const work = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    idle.delete(socket);
    response.once('close', () => {
      if (open.has(socket)) idle.add(socket);
    });
  };

  return {
    /** Call it before the server listens. */
    watch: (server: Server): void => {
      server.on('connection', admit);
      server.prependListener('request', work);
    },
  };
};

export class PortInUseError extends Error {
  override readonly name = 'PortInUseError';
}

export interface Listening {
  readonly port: number;
  /** A warning when only one loopback address is bound. */
  readonly note: string | null;
  /** Closes the second socket, which the application does not know. */
  readonly close: () => void;
}

/** @throws when the server does not listen on a port */
const listeningPort = (server: Server): number => {
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the server listens on no port');
  return address.port;
};

const listenOnIpv6 = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: '::1', ipv6Only: true }, () => {
      server.off('error', reject);
      resolve(listeningPort(server));
    });
  });

const closeServer = (server: Server): void => {
  server.close();
  server.closeAllConnections();
};

const timeoutsOf = ({ server }: FastifyInstance) => {
  const { headersTimeout, requestTimeout, keepAliveTimeout } = server;
  return { headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval: 1_000 };
};

/** Serves ::1 too, so that no other user can take that address. */
const openSecond = async (
  app: FastifyInstance,
  port: number,
  watch: (server: Server) => void,
): Promise<{ port: number; server: Server | null }> => {
  const server = createServer(timeoutsOf(app), app.routing);
  watch(server);
  try {
    return { port: await listenOnIpv6(server, port), server };
  } catch (error) {
    if (!hasCode(error, 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL')) throw error;
    return { port, server: null };
  }
};

const tries = 5;

const bindBoth = async (
  app: FastifyInstance,
  port: number,
  watch: (server: Server) => void,
): Promise<Listening> => {
  for (let attempt = 1; ; attempt += 1) {
    const second = await openSecond(app, port, watch);
    try {
      await app.listen({ host: '127.0.0.1', port: second.port });
    } catch (error) {
      if (second.server !== null) closeServer(second.server);
      if (port === 0 && attempt < tries && hasCode(error, 'EADDRINUSE')) continue;
      throw error;
    }
    const bound = listeningPort(app.server);
    const { server } = second;
    if (server === null)
      return {
        port: bound,
        note: 'this machine has no IPv6 loopback; only 127.0.0.1 is served',
        close: () => {},
      };
    return { port: bound, note: null, close: () => closeServer(server) };
  }
};

/**
 * For the hub of this person: nobody else reaches a socket in a private folder, or takes its place.
 * @returns what closes it
 */
export const listenForHub = async (app: FastifyInstance, path: string): Promise<() => void> => {
  const server = createServer(timeoutsOf(app), app.routing);
  // The lock of the project is ours: what lies there was left by an earlier process.
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path }, resolve);
  });
  chmodSync(path, 0o600);
  return () => closeServer(server);
};

/** Linux reports the limit of open files; elsewhere this is a cautious guess. */
const openFilesAtMost = (): number => {
  try {
    return Number(
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 1_024,
    );
  } catch {
    return 1_024;
  }
};

/** Leaves descriptors for requests when sockets are idle. */
const connectionsAtMost = (streams: number): number => {
  const files = openFilesAtMost();
  return Math.min(Math.max(512, streams + 64), Math.floor(files / (streams > 256 ? 2 : 4)));
};

const bind = async (
  app: FastifyInstance,
  host: string,
  port: number,
  streams: number,
): Promise<Listening> => {
  await app.ready();
  const { watch } = createConnectionLimit(connectionsAtMost(streams));
  watch(app.server);
  if (host === 'localhost') return bindBoth(app, port, watch);
  await app.listen({ host, port });
  return { port: listeningPort(app.server), note: null, close: () => {} };
};

/**
 * Listens on 127.0.0.1 and ::1 with one port, on both or neither. Port 0 takes any. @throws
 * PortInUseError
 */
export const listenOnLoopback = (
  app: FastifyInstance,
  host: string,
  port: number,
  streams: number,
): Promise<Listening> => {
  return bind(app, host, port, streams).catch((error: unknown) => {
    if (hasCode(error, 'EADDRINUSE'))
      throw new PortInUseError(
        `port ${port} is already in use; free it, or choose another with --port <other> or: agent config set server.port 0`,
        {
          cause: error,
        },
      );
    throw error;
  });
};
