import { connect, createServer, type Socket } from 'node:net';
import type { AtEnd } from './temporary.ts';

/** A proxy between one server and the database, on a network that fails. */
export const startDatabaseProxy = async (address: string, atEnd: AtEnd) => {
  const { hostname, port } = new URL(address);
  const sockets = new Set<Socket>();
  let isSilent = false;
  let turns = 0;
  const proxy = createServer((client) => {
    const database = connect(Number(port), hostname);
    let spoke: Socket | null = null;
    for (const [from, to] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (from === client && spoke === database) turns += 1;
        spoke = from;
        if (!isSilent) to.write(bytes);
      });
      from.on('error', () => {});
      from.once('close', () => {
        sockets.delete(from);
        if (!isSilent) to.destroy();
      });
    }
  });
  const listen = (at: number): Promise<void> =>
    new Promise((resolve) => proxy.listen(at, '127.0.0.1', resolve));
  const closeAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  await listen(0);
  const own = proxy.address();
  const ownPort = typeof own === 'object' && own !== null ? own.port : 0;
  atEnd(() => {
    closeAll();
    proxy.close();
  });
  const through = new URL(address);
  through.port = String(ownPort);
  return {
    address: through.href,
    /** How often a client spoke after the database had answered. */
    turns: (): number => turns,
    /** Each connection is reset, and new ones are refused. */
    kill: (): void => {
      proxy.close();
      closeAll();
    },
    /** Nothing passes any more in either direction, and nobody is told. */
    silence: (): void => {
      isSilent = true;
    },
    mend: async (): Promise<void> => {
      // What was lost stays lost, as on a real network.
      closeAll();
      isSilent = false;
      if (!proxy.listening) await listen(ownPort);
    },
  };
};
