import { createHmac } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { startServer, token } from '../support/running.ts';

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A request as written, over a real socket: fetch would repair or refuse most of these. */
const send = (port: number, { method = 'GET', path = '/metrics', headers = {}, body }: Sent) =>
  new Promise<{ status: number; headers: object; text: string }>((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
      },
    );
    asked.once('error', reject).end(body);
  });

/** The answer to raw bytes. */
const answerTo = (port: number, bytes: string) =>
  new Promise<{ line: string; headers: string; body: unknown }>((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (data) => {
      text += data;
    });
    socket.once('end', () => {
      const [head = '', body = ''] = text.split('\r\n\r\n');
      const [line = '', ...headers] = head.split('\r\n');
      resolve({ line, headers: headers.join('\n'), body: JSON.parse(body) });
    });
    socket.once('error', reject);
  });

/** The status line of the answer to raw bytes. */
const raw = (port: number, text: string) =>
  new Promise<string>((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.once('data', (data) => {
      resolve(String(data).split('\r\n')[0] ?? '');
      socket.destroy();
    });
    socket.once('error', reject);
  });

const bearer = { authorization: `Bearer ${token}` };

test.each([
  ['an evil name', 'evil.example'],
  ['a wildcard name', '127.0.0.1.nip.io'],
  ['all interfaces', '0.0.0.0'],
  ['a decimal address', '2130706433'],
  ['no port', '127.0.0.1'],
  ['another port', '127.0.0.1:1'],
  ['a trailing dot', 'localhost.'],
])('a Host that is %s is refused before anything else', async (_, host) => {
  const { port } = await startServer();
  const given = host.includes(':') || host === '127.0.0.1' ? host : `${host}:${port}`;

  const answer = await send(port, { headers: { ...bearer, host: given } });

  expect(answer.status).toBe(403);
  expect(JSON.parse(answer.text).error).toMatchObject({
    code: 'forbidden',
    check: 'the Host header',
  });
});

test('two Host headers and an absolute target are refused', async () => {
  const { port } = await startServer();
  const own = `127.0.0.1:${port}`;
  const auth = `Authorization: Bearer ${token}\r\n`;

  const twice = await raw(
    port,
    `GET /metrics HTTP/1.1\r\nHost: ${own}\r\nHost: ${own}\r\n${auth}\r\n`,
  );
  const absolute = await raw(
    port,
    `GET http://${own}/metrics HTTP/1.1\r\nHost: ${own}\r\n${auth}\r\n`,
  );

  expect([twice, absolute].map((line) => line.split(' ')[1])).toEqual([
    expect.stringMatching(/^40[03]$/),
    '403',
  ]);
});

test.each([
  ['another site', { origin: 'http://evil.example' }, 403],
  ['a null origin', { origin: 'null' }, 403],
  ['another local port', { origin: 'http://localhost:1' }, 403],
  ['a prefix of ours', { origin: 'http://localhost.evil.com' }, 403],
  ['cross-site', { 'sec-fetch-site': 'cross-site' }, 403],
  ['cross-site in capitals', { 'sec-fetch-site': 'Cross-Site' }, 403],
  ['same-site', { 'sec-fetch-site': 'same-site' }, 403],
  ['same-origin', { 'sec-fetch-site': 'same-origin' }, 200],
])('a browser request from %s gets the expected status', async (_, headers, status) => {
  const { port } = await startServer();

  for (const path of ['/metrics', '/health']) {
    const answer = await send(port, {
      path,
      headers: { ...bearer, ...headers } as Record<string, string>,
    });

    expect(answer.status).toBe(status);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual(
      [],
    );
  }
});

test.each([
  ['/metrics', 403],
  ['/a2a/discovery', 403],
  ['/openapi.json', 403],
  ['/stream', 403],
  ['/health', 200],
  ['/health/ready', 200],
  ['/', 404],
])('a typed address gets %s only when it is not a route of the API', async (path, status) => {
  const { port } = await startServer();

  const answer = await send(port, {
    path,
    headers: { ...bearer, 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' },
  });

  expect(answer.status).toBe(status);
});

test.each([
  ['a link in a tab', '/', 'navigate', 'document', 404],
  ['a frame', '/', 'navigate', 'iframe', 403],
  ['a script', '/', 'no-cors', 'script', 403],
  ['a link to another route', '/health', 'navigate', 'document', 403],
  ['a link to a file of the page', '/assets/a.js', 'navigate', 'document', 403],
])(
  'of another site, %s may reach the page only as a link in a tab',
  async (_, path, mode, dest, status) => {
    const { port } = await startServer();
    const headers = { 'sec-fetch-mode': mode, 'sec-fetch-dest': dest };

    for (const site of ['cross-site', 'same-site']) {
      const answer = await send(port, { path, headers: { ...headers, 'sec-fetch-site': site } });
      expect(answer.status).toBe(status);
    }
  },
);

test('a rebound page, whose Origin equals its Host, is refused', async () => {
  const { port } = await startServer();
  const headers = {
    ...bearer,
    host: `evil.example:${port}`,
    origin: `http://evil.example:${port}`,
  };

  expect((await send(port, { headers })).status).toBe(403);
});

/** The routes in the tree that the server prints. */
const routesIn = (tree: string) => {
  const prefixes: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, branches = '', part = '', methods = ''] =
      /^(.*?── )(\S*) \(([^)]+)\)/.exec(line) ?? [];
    if (part === '') return [];
    const depth = branches.length / 4;
    const path = `${prefixes[depth - 1] ?? ''}${part}`;
    prefixes[depth] = path;
    return methods.split(', ').map((method) => ({ method, path }));
  });
};

test.each<readonly [string, Readonly<Record<string, string>>]>([
  ['no token', {}],
  ['a wrong token', { authorization: 'Bearer wrong' }],
  ['a token cut short', { authorization: `Bearer ${token.slice(0, -1)}` }],
  ['another scheme', { authorization: `Basic ${token}` }],
  ['a cookie', { cookie: `token=${token}` }],
])(
  'with %s every route but the open ones is refused, also a route that is none',
  async (_, headers) => {
    const { app } = await startServer();
    const routes = routesIn(app.printRoutes({ commonPrefix: false }));
    const open: Readonly<Record<string, number>> = {
      'GET /health': 200,
      'GET /health/ready': 200,
      // The page of this server is not built.
      'GET /': 404,
      'GET /assets/:name': 404,
      'POST /page/session': 400,
      'GET /.well-known/agent-card.json': 200,
      // Without A2A 0.3.
      'GET /.well-known/agent.json': 404,
      // `:role` is none.
      'GET /agents/:role/.well-known/agent-card.json': 404,
      // No secret is set.
      'POST /forge/webhook': 404,
    };

    const all = [
      ...routes,
      { method: 'GET', path: '/nowhere' },
      { method: 'HEAD', path: '/metrics' },
    ];
    const answers: { readonly route: string; readonly status: number }[] = [];
    // A server throttles somebody who guesses more often.
    for (let at = 0; at < all.length; at += 10) {
      const { port } = await startServer();
      const asked = all.slice(at, at + 10).map(async ({ method, path }) => ({
        route: `${method} ${path}`,
        status: (await send(port, { method, path: `${path}?token=${token}`, headers })).status,
      }));
      answers.push(...(await Promise.all(asked)));
    }

    expect(routes.length).toBeGreaterThan(12);
    for (const { route, status } of answers)
      expect([route, status]).toEqual([route, open[route] ?? 401]);
  },
);

test('a 401 says how to get a token', async () => {
  const { port } = await startServer();

  const answer = await send(port, {});

  expect(answer).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
  expect(JSON.parse(answer.text).error.message).toContain('look into the token file');
});

test('OPTIONS is refused', async () => {
  const { port } = await startServer();

  expect((await send(port, { method: 'OPTIONS', headers: bearer })).status).toBe(403);
});

test.each([
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/xml',
  'text/json',
  'application/json; charset=latin1',
  'application/json; charset=utf-8; charset=latin1',
  '',
])('a body of type %j is refused', async (type) => {
  const { port } = await startServer();
  const headers = { ...bearer, ...(type === '' ? {} : { 'content-type': type }) };

  const answer = await send(port, { method: 'POST', path: '/a2a/execute', headers, body: '{}' });

  expect(answer.status).toBe(415);
  expect(JSON.parse(answer.text).error.code).toBe('unsupported_media_type');
});

test('a body one byte too large is refused and the server goes on', async () => {
  const { port, call } = await startServer();
  const headers = { ...bearer, 'content-type': 'application/json; charset=utf-8' };
  const body = `"${'x'.repeat(1024 * 1024 - 1)}"`;

  const answer = await send(port, { method: 'POST', path: '/a2a/execute', headers, body });

  expect(answer.status).toBe(413);
  expect(JSON.parse(answer.text).error.code).toBe('payload_too_large');
  expect((await call('list', {})).result).toEqual({ tasks: [] });
});

test.each(['/health?x=', '/stream/', '/nowhere/'])(
  'a URL of %s… over 2 KiB is refused, one of 2 KiB is not',
  async (start) => {
    const { port } = await startServer();
    const path = start.padEnd(2_048, 'x');

    const [longest, longer] = [
      await send(port, { path, headers: bearer }),
      await send(port, { path: `${path}x`, headers: bearer }),
    ];

    expect(longest.status).toBe(start.startsWith('/health') ? 200 : 404);
    expect(longer.status).toBe(414);
    expect(JSON.parse(longer.text).error.code).toBe('uri_too_long');
  },
);

test('every answer has the security headers for browsers', async () => {
  const { port } = await startServer();

  const { headers } = await send(port, { path: '/health' });

  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-resource-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cache-control': 'no-store',
  });
});

test('the server proves its identity before a client sends the token', async () => {
  const { port } = await startServer();
  const expected = createHmac('sha256', token).update(`abc 127.0.0.1:${port}`).digest('base64url');

  const answer = JSON.parse((await send(port, { path: '/health?challenge=abc' })).text);

  expect(answer.proof).toBe(expected);
});

test('the twenty-first request with a wrong token in a minute is throttled; one with the right token is not', async () => {
  const { port, logged } = await startServer();
  const wrong = () => send(port, { headers: { authorization: 'Bearer wrong' } });
  const first: number[] = [];
  for (let n = 0; n < 20; n += 1) first.push((await wrong()).status);

  const more = [await wrong(), await wrong()];
  const good = await send(port, { headers: bearer });

  expect(first).toEqual(Array.from({ length: 20 }, () => 401));
  expect(
    more.map(({ status, headers }) => [status, (headers as Record<string, string>)['retry-after']]),
  ).toEqual([
    [429, '60'],
    [429, '60'],
  ]);
  expect(good.status).toBe(200);
  expect(logged.filter(({ message }) => message.startsWith('too many requests'))).toHaveLength(1);
});

const host = 'Host: 127.0.0.1';
test.each([
  ['no HTTP', 'hello\r\n\r\n', 400, 'invalid_request'],
  ['a version that is none', `GET / HTTP/9\r\n${host}\r\n\r\n`, 400, 'invalid_request'],
  [
    'headers of 17 KiB',
    `GET / HTTP/1.1\r\n${host}\r\nX: ${'x'.repeat(17 * 1024)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  [
    'a path that cannot be decoded',
    `GET /stream/%zz HTTP/1.1\r\n${host}\r\nConnection: close\r\n\r\n`,
    400,
    'invalid_request',
  ],
  ['no Host', 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n', 403, 'forbidden'],
])('%s gets an error in the usual form', async (_, bytes, status, code) => {
  const { port } = await startServer();

  const { line, headers, body } = await answerTo(port, bytes);

  expect(line).toMatch(new RegExp(`^HTTP/1.1 ${status} \\w`));
  expect(body).toEqual({ error: expect.objectContaining({ code, message: expect.any(String) }) });
  expect(headers).toContain('x-content-type-options: nosniff');
  expect(headers).toContain('content-type: application/json; charset=utf-8');
});
