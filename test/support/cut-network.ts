import { createServer, request } from 'node:http';
import type { Socket } from 'node:net';
import type { AtEnd } from './temporary.ts';

/** A proxy between a browser and a server on this machine, which can cut every connection. */
export const startCutNetwork = async (atEnd: AtEnd) => {
  const sockets = new Set<Socket>();
  let isCut = false;
  const proxy = createServer((asked, answer) => {
    const { hostname, port, pathname, search } = new URL(asked.url ?? '');
    const { method, headers } = asked;
    const path = pathname + search;
    const forwarded = request({ hostname, port, path, method, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(answer);
      answer.once('close', () => response.destroy());
    });
    forwarded.once('error', () => answer.destroy());
    asked.pipe(forwarded);
  });
  proxy.on('connection', (socket) => {
    if (isCut) socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const address = proxy.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    /** Of the browser; loopback addresses are asked through it too. */
    proxy: { server: `http://127.0.0.1:${port}`, bypass: '<-loopback>' },
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.destroy();
    },
    mend: () => {
      isCut = false;
    },
  };
};
