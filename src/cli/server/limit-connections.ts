import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Limits the open connections of all servers together. A new connection beyond the limit closes the
 * longest idle one, so that idle sockets keep nobody out; when all are busy, the new one is closed.
 */
export const createConnectionLimit = (atMost: number) => {
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
