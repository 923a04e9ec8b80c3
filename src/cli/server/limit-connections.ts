import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Keeps the connections of servers together below a number. One too many ends the one that has been idle longest, so that
 * sockets that ask nothing keep nobody out; when every one is at work, the new one is ended.
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
    /** Before the server listens. */
    watch: (server: Server): void => {
      server.on('connection', admit);
      server.prependListener('request', work);
    },
  };
};
