import type { LookupAddress, lookup } from 'node:dns';
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createProxy, type ProxyOptions } from '../../../src/actors/network/proxy.ts';

const listening = async (server: Server): Promise<number> => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
};

/** A host that says what it was asked. */
const startHost = async () => {
  const asked: IncomingMessage[] = [];
  const server = createHttpServer((request, response) => {
    asked.push(request);
    let body = '';
    request.on('data', (piece) => {
      body += String(piece);
    });
    request.on('end', () => response.end(`host got ${request.method} ${request.url} ${body}`));
  });
  const port = await listening(server);
  return { port, asked };
};

/** Names and their addresses; the only DNS of these tests. */
const resolverOf = (names: Readonly<Record<string, readonly string[]>>, asked: string[] = []) =>
  ((host: string, _options: unknown, callback: (error: Error | null, all?: unknown) => void) => {
    asked.push(host);
    const all = names[host]?.map(
      (address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }),
    );
    if (all === undefined) callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }));
    else callback(null, all);
  }) as unknown as typeof lookup;

const start = async (given: Partial<ProxyOptions> = {}) => {
  const seen: string[] = [];
  const proxy = createProxy({
    hosts: [],
    always: [],
    record: ({ host, port, allowed }) =>
      void seen.push(`${host}:${port} ${allowed ? 'allowed' : 'refused'}`),
    ...given,
  });
  const server = createServer();
  const port = await listening(server);
  await proxy.listenOn(server);
  onTestFinished(proxy.close);
  /** Everything that comes for these bytes until the connection ends, or `enough` of it. */
  const send = async (bytes: string, enough = /$^/): Promise<string> => {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    let text = '';
    socket.on('error', () => {});
    socket.write(bytes);
    return new Promise((resolve) => {
      socket.setEncoding('latin1').on('data', (piece) => {
        text += piece;
        if (enough.test(text)) resolve(text);
      });
      socket.once('close', () => resolve(text));
    });
  };
  const ask = (host: string, more = '') =>
    send(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`, / Established\r\n\r\n/);
  return { port, send, ask, seen };
};

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);

test('a listed host is reached through a tunnel and by a request with a whole address', async () => {
  const host = await startHost();
  const { send, seen } = await start({ hosts: ['127.0.0.1'] });
  const place = `127.0.0.1:${host.port}`;

  const tunnel = await send(
    `CONNECT ${place} HTTP/1.1\r\nHost: x\r\n\r\nGET /in HTTP/1.1\r\nHost: in\r\nConnection: close\r\n\r\n`,
  );
  const forward = await send(
    `POST http://${place}/a?b=c HTTP/1.1\r\nHost: ${place}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`,
  );

  expect(tunnel).toMatch(/^HTTP\/1\.1 200 Connection Established[\s\S]*host got GET \/in/);
  expect(forward).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*host got POST \/a\?b=c hi/);
  expect(new Set(seen)).toEqual(new Set([`${place} allowed`]));
});

test('a chunked body reaches the host whole, and hop-by-hop headers do not', async () => {
  const host = await startHost();
  const { send } = await start({ hosts: ['127.0.0.1'] });

  const answer = await send(
    [
      `POST http://127.0.0.1:${host.port}/ HTTP/1.1`,
      'Host: other.example',
      'Transfer-Encoding: chunked',
      'Proxy-Authorization: Basic c2VjcmV0',
      'Proxy-Connection: keep-alive',
      'X-Private: 1',
      'X-Kept: 1',
      'Connection: close, X-Private',
      '',
      '2\r\nhi\r\n0\r\n\r\n',
    ].join('\r\n'),
  );

  expect(answer).toContain('host got POST / hi');
  const [request] = host.asked;
  expect(request?.headers).toMatchObject({ host: `127.0.0.1:${host.port}`, 'x-kept': '1' });
  for (const name of ['proxy-authorization', 'proxy-connection', 'x-private'])
    expect(request?.headers).not.toHaveProperty(name);
});

test.each([
  '127.0.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '017700000001',
  '127.1',
  '0',
  '0.0.0.0',
  'localhost',
  'LOCALHOST',
  'localhost.',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:7f00:0001]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b::a00:1]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '10.0.0.1',
  '172.16.0.1',
  '192.168.1.1',
  '100.64.0.1',
  '169.254.169.254',
  '[fe80::1]',
  '[fd00::1]',
  '[fd00:ec2::254]',
  'rebind.example',
  'mapped.example',
  'nat64.example',
  'both.private.example',
  'Rebind.Example.',
])('with every public host allowed, %s is refused, and nothing is connected to', async (host) => {
  let connections = 0;
  const target = createServer(() => {
    connections += 1;
  });
  const targetPort = await listening(target);
  const names = {
    ...{ localhost: ['127.0.0.1', '::1'], 'rebind.example': ['127.0.0.1'] },
    ...{ 'mapped.example': ['::ffff:127.0.0.1'], 'nat64.example': ['64:ff9b::7f00:1'] },
    'both.private.example': ['10.0.0.1', 'fd00::1'],
    ...Object.fromEntries(
      ['2130706433', '0x7f000001', '0x7f.1', '017700000001', '127.1', '0'].map((name) => [
        name,
        [name === '0' ? '0.0.0.0' : '127.0.0.1'],
      ]),
    ),
  };
  const { ask, send, seen } = await start({ hosts: ['*'], resolve: resolverOf(names) });

  const tunnel = await ask(`${host}:${targetPort}`);
  const forward = await send(
    `GET http://${host}:${targetPort}/ HTTP/1.1\r\nHost: public.example\r\nConnection: close\r\n\r\n`,
  );

  expect([statusOf(tunnel), statusOf(forward)]).toEqual([403, 403]);
  expect(connections).toBe(0);
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.join()).not.toContain('allowed');
});

test.each([
  ['port 0', '93.184.216.34:0'],
  ['a port above 65535', '93.184.216.34:65536'],
  ['a port with a sign', '93.184.216.34:+80'],
  ['no port', '93.184.216.34'],
  ['no host', ':443'],
  ['two hosts', 'public.example@127.0.0.1:443'],
  ['a zone', '[fe80::1%25lo]:443'],
  ['an empty label', 'a..example:443'],
  ['two trailing dots', 'localhost..:443'],
  ['a path', 'public.example/x:443'],
  ['a name of 300 characters', `${'a'.repeat(50)}.${'b'.repeat(250)}:443`],
  ['a control character', 'public.example%00.test:443'],
])('CONNECT with %s is refused', async (_, target) => {
  const { ask, seen } = await start({ hosts: ['*'], resolve: resolverOf({}) });

  expect(statusOf(await ask(target))).toBe(400);
  expect(seen).toEqual([]);
});

test.each([
  ['a path alone, with a Host', 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n'],
  ['https', 'GET https://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n'],
  ['a file', 'GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n'],
  ['port 0', 'GET http://127.0.0.1:0/ HTTP/1.1\r\nHost: x\r\n'],
  [
    'two lengths',
    'POST http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n',
  ],
  [
    'a length and chunks',
    'POST http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n',
  ],
])('a request with %s is refused', async (_, head) => {
  const { send } = await start({ hosts: ['127.0.0.1'] });

  expect(statusOf(await send(`${head}Connection: close\r\n\r\n`))).toBe(400);
});

test.each([
  [['api.example'], 'api.example', 200],
  [['api.example'], 'API.Example.', 200],
  [['API.Example.'], 'api.example', 200],
  [['api.example'], 'other.example', 403],
  [['api.example'], 'api.example.evil.test', 403],
  [['api.example'], 'xapi.example', 403],
  [['*.example'], 'a.b.example', 200],
  [['*.api.example'], 'api.example', 403],
  [['*.api.example'], 'xapi.example', 403],
  [[], 'api.example', 403],
])('of the list %j the host %s gives %i', async (hosts, host, status) => {
  const { port } = await startHost();
  const names = ['api.example', 'other.example', 'api.example.evil.test', 'xapi.example'];
  const resolve = resolverOf(
    Object.fromEntries([...names, 'a.b.example'].map((name) => [name, ['127.0.0.1']])),
  );
  const { ask } = await start({ hosts: [...hosts, '127.0.0.1'], resolve });

  expect(statusOf(await ask(`${host}:${port}`))).toBe(status);
});

test('a listed name that leads to a private address needs that address in the list, too', async () => {
  const { port } = await startHost();
  const resolve = resolverOf({ 'build.corp.example': ['127.0.0.1'] });
  const withoutAddress = await start({ hosts: ['*.corp.example'], resolve });
  const withNetwork = await start({ hosts: ['*.corp.example', '127.0.0.0/8'], resolve });

  const refused = await withoutAddress.ask(`build.corp.example:${port}`);

  expect(refused).toContain('build.corp.example (127.0.0.1) is not a public address');
  expect(statusOf(await withNetwork.ask(`build.corp.example:${port}`))).toBe(200);
});

test('a name is looked up once: what it means afterwards does not count', async () => {
  const { port } = await startHost();
  const asked: string[] = [];
  const answers = [['127.0.0.1'], ['10.0.0.1']];
  const resolve = ((host: string, options: object, callback: never) =>
    (resolverOf({ [host]: answers.shift() ?? [] }, asked) as (...all: unknown[]) => void)(
      host,
      options,
      callback,
    )) as unknown as typeof lookup;
  const { ask } = await start({ hosts: ['moves.example', '127.0.0.1'], resolve });

  expect(statusOf(await ask(`moves.example:${port}`))).toBe(200);
  expect(asked).toEqual(['moves.example']);
});

test('what is always reachable is so with its port alone, whatever its address', async () => {
  const { port } = await startHost();
  const { ask } = await start({ always: [{ host: '127.0.0.1', port }] });

  expect(statusOf(await ask(`127.0.0.1:${port}`))).toBe(200);
  expect(statusOf(await ask(`127.0.0.1:${port - 1}`))).toBe(403);
});

test('headers that are too long, and those that never end, end the connection', async () => {
  const { ask, send } = await start({
    hosts: ['127.0.0.1'],
    limits: { headerMs: 300 },
  });

  const long = await ask('127.0.0.1:80', `X: ${'x'.repeat(64 * 1024)}\r\n`);
  const never = await send('CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n');

  expect(statusOf(long)).toBe(431);
  expect(never).not.toContain('200');
});

test('a name that is not looked up in time, and a host that is silent, end the connection', async () => {
  const silent = createServer(() => {});
  const port = await listening(silent);
  const { ask, send } = await start({
    hosts: ['slow.example', '127.0.0.1'],
    resolve: (() => {}) as unknown as typeof lookup,
    limits: { resolveMs: 100, idleMs: 300 },
  });

  expect(statusOf(await ask('slow.example:443'))).toBe(504);
  expect(await send(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(
    /^HTTP\/1.1 200/,
  );
});

test('more connections than allowed are refused, and one that ended makes room', async () => {
  const silent = createServer(() => {});
  const target = await listening(silent);
  const { port } = await start({ hosts: ['127.0.0.1'], limits: { connections: 2 } });
  const open = async (): Promise<string> => {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {}).write(`CONNECT 127.0.0.1:${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return Promise.race([
      once(socket, 'data').then(([data]) => String(data)),
      once(socket, 'close').then(() => 'closed'),
    ]);
  };

  expect(await open()).toContain('200');
  expect(await open()).toContain('200');
  expect(await open()).toBe('closed');
});

test('a host that cannot be reached is named in the answer', async () => {
  const gone = createServer();
  const port = await listening(gone);
  gone.close();
  await once(gone, 'close');
  const { ask, send } = await start({ hosts: ['127.0.0.1'] });

  expect(await ask(`127.0.0.1:${port}`)).toMatch(/^HTTP\/1.1 502 [\s\S]*ECONNREFUSED/);
  expect(
    await send(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
  ).toMatch(/^HTTP\/1.1 502 [\s\S]*ECONNREFUSED/);
});
