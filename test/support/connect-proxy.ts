import { createServer, request as send } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { onTestFinished } from 'vitest';

interface ProxyOptions {
  /** The port that every name leads to, on this machine. */
  readonly port: number;
  /** `user:password`; without it nobody is asked. */
  readonly login?: string;
}

/** A proxy of a company: it tunnels by CONNECT and passes on plain HTTP, and notes the hosts. */
export const startProxy = async ({ port, login }: ProxyOptions) => {
  const hosts: string[] = [];
  const isAllowed = (given: string | undefined): boolean =>
    login === undefined || given === `Basic ${Buffer.from(login).toString('base64')}`;
  const server = createServer((request, response) => {
    const { pathname, search, host } = new URL(request.url ?? '', 'http://no-proxy-request');
    hosts.push(host);
    if (!isAllowed(request.headers['proxy-authorization'])) {
      response.writeHead(407).end();
      return;
    }
    const { 'proxy-authorization': _, ...headers } = request.headers;
    const { method = 'GET' } = request;
    const onward = send({ host: '127.0.0.1', port, method, headers, path: pathname + search });
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  server.on('connect', (request, socket, head) => {
    hosts.push(request.url ?? '');
    socket.on('error', () => {});
    if (!isAllowed(request.headers['proxy-authorization'])) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { hosts, address: `127.0.0.1:${(server.address() as AddressInfo).port}` };
};
