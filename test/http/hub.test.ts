import { readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';
import { ask, createBrowserKey, openHub, signIn } from '../support/hub.ts';
import { endOfFile } from '../support/temporary.ts';

/** What an attacker tries at the hub: another site, another port, another user, who takes its port. */

const atEnd = endOfFile();
let hub: ReturnType<typeof openHub>;
let projects: readonly ReturnType<typeof openProject>[];
let address: string;
let origin: string;
let slug: string;
let own: Awaited<ReturnType<typeof signIn>>;

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const list = (token: string, more: Readonly<Record<string, string>> = {}) =>
  ask(`${origin}/p/${slug}/a2a/execute`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer(token), ...more },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'list', params: {} }),
  });
const codeIn = (given: string): string => /#c=([\w-]+)/.exec(given)?.[1] ?? '';

beforeAll(async () => {
  projects = [openProject(undefined, { atEnd }), openProject(undefined, { atEnd })];
  hub = openHub(atEnd, projects);
  address = await hub.address(0);
  ({ origin } = new URL(address));
  slug = new URL(address).pathname.split('/')[2] ?? '';
  own = await signIn(address);
}, 60_000);

test('the token of a tab reaches the project, and no other credential does', async () => {
  const good = await list(own.token);
  const server = readFileSync(join(projects[0]?.stateDir ?? '', 'token'), 'utf8').trim();
  const others = ['', 'x', own.token.slice(1), server, codeIn(address), own.id];
  const paths = ['/hub/projects', `/p/${slug}/health`, `/p/${slug}/stream`, '/p/none/health', '/x'];
  const asked = await Promise.all(
    others.flatMap((token) => [
      list(token),
      ...paths.map((path) => ask(`${origin}${path}`, { headers: bearer(token) })),
    ]),
  );
  const elsewhere = await Promise.all([
    ask(`${origin}/hub/projects?token=${own.token}`),
    ask(`${origin}/hub/projects`, { headers: { cookie: `token=${own.token}` } }),
    ask(`${origin}/hub/projects`, { headers: { authorization: `Basic ${own.token}` } }),
    // A token of the hub is none of a server.
    ask(`${projects[0]?.serverFile().url}/metrics`, { headers: bearer(own.token) }),
  ]);

  expect([good.status, JSON.parse(good.text).result.tasks]).toEqual([200, []]);
  expect([...new Set([...asked, ...elsewhere].map(({ status }) => status))]).toEqual([401]);
});

test('a Host, an Origin or a site that is not the hub is refused, and nothing allows other origins', async () => {
  const { port } = new URL(origin);
  const hosts = [
    ...['evil.example', `evil.example:${port}`, `0.0.0.0:${port}`, `localhost.:${port}`],
    ...['localhost', `localhost:${Number(port) + 1}`, `2130706433:${port}`, `a.localhost:${port}`],
    ...[`127.0.0.1.nip.io:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`],
  ];
  const requests = [
    ...hosts.map((host) => list(own.token, { host })),
    ...['null', 'http://evil.example', `http://127.0.0.1:${port}`, 'http://localhost:5173'].map(
      (value) => list(own.token, { origin: value }),
    ),
    // DNS rebinding: both are the attacker's.
    list(own.token, { host: `evil.example:${port}`, origin: `http://evil.example:${port}` }),
    ...['cross-site', 'same-site', 'none'].map((site) =>
      list(own.token, { 'sec-fetch-site': site }),
    ),
    ask(`${origin}/hub/sign-in.js`, { headers: { 'sec-fetch-site': 'same-site' } }),
    ask(`${origin}/`, { headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' } }),
    ask(`${origin}/`, { method: 'OPTIONS', headers: { 'sec-fetch-site': 'cross-site' } }),
  ];
  const answers = await Promise.all(requests);

  expect([...new Set(answers.map(({ status }) => status))]).toEqual([403]);
  for (const { headers } of answers)
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  const alias = await ask(`http://127.0.0.1:${port}/p/${slug}/`);
  expect([alias.status, alias.headers['location']]).toEqual([308, `${origin}/p/${slug}/`]);
  const link = {
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-dest': 'document',
  };
  expect((await ask(`${origin}/p/${slug}/`, { headers: link })).status).toBe(200);
});

test('every answer has the strict headers, also what a server answers', async () => {
  for (const answer of await Promise.all([
    ask(`${origin}/`),
    ask(`${origin}/p/x/`),
    list(own.token),
    ask(`${origin}/x`),
  ]))
    expect(answer.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringMatching(/^default-src '(self|none)'/),
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
    });
  const { headers } = await ask(`${origin}/`);
  expect(headers['content-security-policy']).toContain("require-trusted-types-for 'script'");
  expect(JSON.stringify(headers)).not.toContain('set-cookie');
});

test('a code works once; a signature counts once, for one nonce, one key and one origin', async () => {
  const { key, id } = own;
  expect(await key.register(origin, codeIn(address))).toContain('was used already');
  expect(await key.register(origin, 'guessed')).toContain('does not know that code');
  const nonce = await key.nonce(origin);
  const signature = await key.sign(origin, id, nonce);
  const statusOf = async (...words: Parameters<typeof key.tokenFor>) =>
    (await key.tokenFor(...words)).status;

  // A page at another port, or who has taken the port, gets a signature that names that origin.
  const named = await key.sign('http://localhost:9', id, nonce);
  expect(await statusOf(origin, id, nonce, named)).toBe(401);
  // A nonce that the hub has not made.
  const [at = '', , seal = ''] = nonce.split('.');
  for (const forged of [`${at}.x.${seal}`, 'x', '', `${Number(at) + 1}${nonce.slice(at.length)}`])
    expect(await statusOf(origin, id, forged, await key.sign(origin, id, forged))).toBe(401);
  // Another key, another id.
  const other = await createBrowserKey();
  expect(await statusOf(origin, id, nonce, await other.sign(origin, id, nonce))).toBe(401);
  const strange = 'abcdefabcdef';
  expect(await statusOf(origin, strange, nonce, await key.sign(origin, strange, nonce))).toBe(401);
  expect(await statusOf(origin, id, nonce, signature)).toBe(200);
  expect(await statusOf(origin, id, nonce, signature)).toBe(401);
});

test('revoke ends a stream at once, and the session that the server gave', async () => {
  const { id, token } = await signIn(await hub.address(0));
  const stream = await fetch(`${origin}/p/${slug}/stream`, { headers: bearer(token) });
  const reader = stream.body?.getReader();
  await reader?.read();

  expect((await hub.hub('revoke', id)).code).toBe(0);

  await expect(
    (async () => {
      while ((await reader?.read())?.done === false);
      throw new Error('ended');
    })(),
  ).rejects.toThrow();
  expect((await list(token)).status).toBe(401);
  expect((await list(own.token)).status).toBe(200);
  expect((await hub.hub('revoke', id)).code).toBe(3);
  expect((await hub.hub('revoke')).code).toBe(2);
});

test('what lies in its folder is for this person alone, and holds no private key and no token', () => {
  expect(statSync(hub.folder).mode & 0o777).toBe(0o700);
  for (const name of ['logins.json', 'hub.sock', 'port.json', 'hub.log', 'hub.lock'])
    expect([name, statSync(join(hub.folder, name)).mode & 0o077]).toEqual([name, 0]);
  const text = ['logins.json', 'hub.log', 'port.json']
    .map((name) => readFileSync(join(hub.folder, name), 'utf8'))
    .join();
  expect(text).not.toContain(own.token);
  expect(text).not.toContain(codeIn(address));
});

test('who takes the port gets nothing that counts: the hub moves, and the old keys are over', async () => {
  const { port } = new URL(origin);
  await hub.hub('stop');
  const heard: string[] = [];
  const squatter = createServer((request, response) => {
    heard.push(String(request.headers.authorization));
    response.end('{}');
  });
  await new Promise<void>((resolve) =>
    squatter.listen({ port: Number(port), host: '127.0.0.1' }, resolve),
  );
  atEnd(() => void squatter.close());
  // The tab that is open still sends its token, and signs a nonce that the squatter passes on.
  await ask(`${origin}/hub/projects`, { headers: bearer(own.token) });
  expect(heard).toEqual([`Bearer ${own.token}`]);

  expect((await hub.hub('start')).code).toBe(0);

  const { url: moved } = JSON.parse((await hub.hub('start', '--json')).out);
  expect(moved).not.toBe(origin);
  expect((await ask(`${moved}/hub/projects`, { headers: bearer(own.token) })).status).toBe(401);
  expect(
    (await ask(`${projects[0]?.serverFile().url}/metrics`, { headers: bearer(own.token) })).status,
  ).toBe(401);
  const nonce = await own.key.nonce(moved);
  for (const named of [origin, moved]) {
    const signature = await own.key.sign(named, own.id, nonce);
    expect((await own.key.tokenFor(moved, own.id, nonce, signature)).status).toBe(401);
  }
  // The new port is kept, also when the old one is free again.
  squatter.close();
  squatter.closeAllConnections();
  await hub.hub('stop');
  expect(JSON.parse((await hub.hub('start', '--json')).out).url).toBe(moved);
  origin = moved;
});

test('two starts make one hub', async () => {
  await hub.hub('stop');
  const started = await Promise.all([1, 2, 3].map(() => hub.hub('start', '--json')));

  expect(new Set(started.map(({ out }) => JSON.parse(out).pid)).size).toBe(1);
});

test('a folder that is gone is shown as gone and can be removed from the list; names stay', async () => {
  await hub.agentIn(1, 'server', 'start');
  await hub.agentIn(1, 'server', 'stop');
  rmSync(projects[1]?.root ?? '', { recursive: true });
  const listed = JSON.parse((await hub.hub('status', '--json')).out);
  const gone = listed.find((each: { gone?: boolean }) => each.gone);
  expect(listed).toHaveLength(2);
  expect(gone).toMatchObject({ project: projects[1]?.root, running: false });
  const { token } = await signIn(await hub.address(0));
  const drop = (name: string) =>
    ask(`${origin}/hub/projects/${name}`, { method: 'DELETE', headers: bearer(token) });

  expect((await drop(slug)).status).toBe(403);
  expect((await drop(gone.slug)).status).toBe(204);

  expect(JSON.parse((await hub.hub('status', '--json')).out)).toEqual([
    {
      project: projects[0]?.root,
      slug,
      address: `${origin}/p/${slug}/`,
      running: true,
    },
  ]);
});

test('a server that cannot start says why', async () => {
  const { token } = await signIn(await hub.address(0));
  await hub.agentIn(0, 'server', 'stop');
  expect((await list(token)).status).toBe(503);
  rmSync(projects[0]?.configFile ?? '');

  const answer = await ask(`${origin}/hub/projects/${slug}/start`, {
    method: 'POST',
    headers: bearer(token),
  });

  expect([answer.status, JSON.parse(answer.text).error.message]).toEqual([
    503,
    expect.stringContaining('the configuration file cannot be read'),
  ]);
});
