import { expect, test } from 'vitest';
import {
  createPageSessions,
  type PageCode,
  type PageSession,
} from '../../src/http/page-sessions.ts';
import { startServer, token } from '../support/running.ts';

type Server = Awaited<ReturnType<typeof startServer>>;

const json = { 'content-type': 'application/json' };
const send = async (
  { base }: Pick<Server, 'base'>,
  method: string,
  path: string,
  {
    as,
    headers = {},
    body,
  }: { as?: string; headers?: Record<string, string>; body?: unknown } = {},
) => {
  const response = await fetch(base + path, {
    method,
    headers: {
      ...json,
      ...(as === undefined ? {} : { authorization: `Bearer ${as}` }),
      ...headers,
    },
    ...(method === 'GET'
      ? {}
      : { body: typeof body === 'string' ? body : JSON.stringify(body ?? {}) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : JSON.parse(text), response };
};
const codeOf = async (server: Server): Promise<string> =>
  (await send(server, 'POST', '/page/codes', { as: token })).body.code;
const exchange = (server: Server, code: string, headers: Record<string, string> = {}) =>
  send(server, 'POST', '/page/session', { body: { code }, headers });
const login = async (server: Server): Promise<string> =>
  (await exchange(server, await codeOf(server))).body.token;

test('a code is exchanged for a session, which may do what the page does', async () => {
  const server = await startServer();

  const { status, body } = await exchange(server, await codeOf(server));

  expect([status, body.token === token]).toEqual([200, false]);
  const create = {
    jsonrpc: '2.0',
    id: 1,
    method: 'create',
    params: { description: 'by the page' },
  };
  const created = await send(server, 'POST', '/a2a/execute', { as: body.token, body: create });
  expect(created.body.result.title).toBe('by the page');
  expect((await send(server, 'GET', '/page/session', { as: body.token })).body).toEqual({
    name: 'owner',
    rights: 'admin',
    project: 'project',
    version: '2.1.0',
    started_at: expect.stringMatching(/^\d{4}-.*Z$/),
    expires_at: body.expires_at,
  });
});

test('a code works once, and the second use says so', async () => {
  const server = await startServer();
  const code = await codeOf(server);

  const answers = await Promise.all([exchange(server, code), exchange(server, code)]);

  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401]);
  const refused = answers.find(({ status }) => status === 401);
  expect(refused?.body.error).toEqual({
    code: 'unauthorized',
    code_refused: 'used',
    message: 'That code was used already. Run `agent open` again for a new one.',
  });
});

test('a code works for 60 seconds, a session for 12 hours', async () => {
  let at = 1_000_000;
  const server = await startServer({ now: () => at });
  const late = await codeOf(server);
  at += 60_001;
  const session = await login(server);
  const status = async () =>
    (await send(server, 'GET', '/metrics', { as: session })).response.status;

  expect((await exchange(server, late)).body.error.code_refused).toBe('expired');
  at += 12 * 60 * 60 * 1_000;
  const before = await fetch(`${server.base}/metrics`, {
    headers: { authorization: `Bearer ${session}`, accept: 'application/json' },
  });
  expect(before.status).toBe(200);
  at += 1;
  expect(await status()).toBe(401);
});

test('after 20 wrong codes in a minute guesses are refused, and the true code still works', async () => {
  const server = await startServer();
  const code = await codeOf(server);
  const wrong = (number: number) => exchange(server, `${code.slice(0, -2)}${number}`);

  const statuses = [];
  for (let number = 10; number < 35; number += 1) statuses.push((await wrong(number)).status);

  expect(statuses.slice(0, 20).every((status) => status === 401)).toBe(true);
  expect(statuses.slice(20).every((status) => status === 429)).toBe(true);
  expect((await exchange(server, code)).status).toBe(200);
});

test.each([
  ['another site', { origin: 'http://evil.example' }],
  ['no site', { origin: 'null' }],
  ['another port', { 'sec-fetch-site': 'same-site' }],
  ['a typed address', { 'sec-fetch-site': 'none' }],
])('a code is not exchanged for a page of %s, and is not used up by it', async (_, headers) => {
  const server = await startServer();
  const code = await codeOf(server);

  expect((await exchange(server, code, headers)).status).toBe(403);
  expect((await exchange(server, code)).status).toBe(200);
});

test.each([
  ['no JSON', 'code=1', json, 400],
  ['a list', '[]', json, 400],
  ['no code', '{}', json, 400],
  ['a number', '{"code":1}', json, 400],
  ['a long code', JSON.stringify({ code: 'x'.repeat(300) }), json, 400],
  ['more than 1 KiB', JSON.stringify({ code: 'x'.repeat(2_000) }), json, 413],
  ['a form', 'code=1', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
  ['16 KiB of headers', '{}', { ...json, 'x-long': 'x'.repeat(17_000) }, 431],
])('the exchange of %s is refused', async (_, body, headers, status) => {
  const server = await startServer();

  expect((await send(server, 'POST', '/page/session', { body, headers })).status).toBe(status);
});

test('after logout, and after the token of the server changed, a session is over', async () => {
  let current = token;
  const server = await startServer({ token: () => current });
  const [one, other] = [await login(server), await login(server)];
  const status = async (as: string) => (await send(server, 'GET', '/page/session', { as })).status;

  expect((await send(server, 'DELETE', '/page/session', { as: one, body: '' })).status).toBe(204);
  expect([await status(one), await status(other)]).toEqual([401, 200]);
  const unused = await codeOf(server);
  current = 'another-token-another-token-another-token';
  expect([await status(other), (await exchange(server, unused)).status]).toEqual([401, 401]);
});

test('logout ends the streams of the session at once, a new token of the server at the next heartbeat', async () => {
  let current = token;
  const server = await startServer({ token: () => current, heartbeatMs: 50 });
  const [one, other] = [await login(server), await login(server)];
  const open = async (as: string) => {
    const signal = AbortSignal.timeout(15_000);
    const headers = { authorization: `Bearer ${as}` };
    const { body } = await fetch(`${server.base}/stream`, { headers, signal });
    return { ended: new Response(body).text().then(() => true) };
  };
  const [first, second, third] = [await open(one), await open(other), await open(token)];

  await send(server, 'DELETE', '/page/session', { as: one, body: '' });
  expect(await first.ended).toBe(true);
  const waits = Promise.race([second.ended, third.ended, Promise.resolve('open')]);
  expect(await waits).toBe('open');
  current = 'another-token-another-token-another-token';
  expect(await Promise.all([second.ended, third.ended])).toEqual([true, true]);
});

test('only the token of the server makes codes', async () => {
  const server = await startServer();
  const session = await login(server);

  const asked = await Promise.all(
    [{}, { as: 'wrong' }, { as: session }].map((how) => send(server, 'POST', '/page/codes', how)),
  );

  expect(asked.map(({ status }) => status)).toEqual([401, 401, 403]);
});

test('the oldest of 101 sessions is over, so memory stays bounded', async () => {
  const server = await startServer();
  const sessions = [];
  for (let number = 0; number < 101; number += 1) sessions.push(await login(server));

  const statuses = await Promise.all(
    [sessions[0], sessions[1], sessions[100]].map(
      async (as = '') => (await send(server, 'GET', '/page/session', { as })).status,
    ),
  );

  expect(statuses).toEqual([401, 200, 200]);
});

test('logins of one token push out none of another', () => {
  const sessions = createPageSessions(Date.now);
  const made = (under: string): string => {
    const session = sessions.exchange((sessions.createCode(under) as PageCode).code);
    return (session as PageSession).token;
  };
  const [kept, first] = [made('owner'), made('ana')];
  for (let number = 0; number < 100; number += 1) made('ana');

  expect(sessions.find(kept)).toMatchObject({ under: 'owner' });
  expect(sessions.find(first)).toBeNull();
});

const page = new Map([
  ['index.html', { type: 'text/html; charset=utf-8', body: Buffer.from('<p>page</p>') }],
  ['assets/a-1.js', { type: 'text/javascript', body: Buffer.from('run()') }],
]);

test('the page and its files are open, and nothing on it may be foreign or inline', async () => {
  const { base } = await startServer({ page });

  const html = await fetch(base);
  const script = await fetch(`${base}/assets/a-1.js`);

  expect([await html.text(), await script.text()]).toEqual(['<p>page</p>', 'run()']);
  const policy = html.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|http|\*/);
  expect(Object.fromEntries(html.headers)).toMatchObject({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  });
  expect(html.headers.get('set-cookie')).toBe(null);
  expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
});

test.each([
  '/assets/b.js',
  '/assets/..%2findex.html',
  '/assets/%2e%2e/%2e%2e/package.json',
  '/assets/..%5c..%5cpackage.json',
  '/assets/a-1.js%00',
  '/assets/',
  '/assets/__proto__',
])('%s is no file of the page', async (path) => {
  const { base } = await startServer({ page });

  expect([401, 404]).toContain((await fetch(base + path)).status);
});

test('a page that is not built says how to build it', async () => {
  const { base } = await startServer();

  const answer = await fetch(base);

  expect([answer.status, await answer.text()]).toEqual([
    404,
    expect.stringContaining('npm run build'),
  ]);
});
