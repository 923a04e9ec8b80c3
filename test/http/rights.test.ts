import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { expect, test } from 'vitest';
import { type AuditLine, hashOfLine } from '../../src/actors/store/rows/audit-rows.ts';
import { commandTable } from '../../src/cli/command-table.ts';
import { mcpToolNames } from '../../src/http/mcp/tools.ts';
import { createMethods } from '../../src/http/methods.ts';
import {
  commandRights,
  holds,
  methodRights,
  needsOfCommand,
  operationRights,
  routeRights,
  toolRights,
} from '../../src/http/people/rights.ts';
import { rights } from '../../src/machines/errors.ts';
import { finish, startServer, token } from '../support/running.ts';

type Server = Awaited<ReturnType<typeof startServer>>;
type AuditView = Omit<AuditLine, 'at' | 'taskId' | 'about'> & {
  readonly at: string;
  readonly task_id?: string;
  readonly about?: string;
};
const everyRight = [...rights, 'runner'] as const;

const send = async (
  { base }: Server,
  path: string,
  as: string,
  {
    method = 'POST',
    body,
    headers = {},
  }: { method?: string; body?: unknown; headers?: object } = {},
) => {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json', ...headers },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body ?? {}) }),
  });
  const text = response.headers.get('content-type')?.includes('event-stream')
    ? ''
    : await response.text();
  await response.body?.cancel().catch(() => {});
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text };
};

const call = async (
  server: Server,
  as: string,
  method: string,
  params: object = {},
  path = '/a2a/execute',
) => (await send(server, path, as, { body: { jsonrpc: '2.0', id: 1, method, params } })).body;

const makeToken = async (server: Server, name: string, more: object = {}): Promise<string> =>
  (await call(server, token, 'token.create', { name, rights: name, ...more })).result.token;

const tokensOf = async (server: Server): Promise<Map<string, string>> => {
  const made = new Map<string, string>();
  for (const right of everyRight) made.set(right, await makeToken(server, right));
  return made;
};

const isForbidden = ({
  error,
}: {
  error?: { code: number; data?: { code: string; needs: string } };
}) => (error?.code === -32034 && error.data?.code === 'forbidden' ? error.data.needs : null);

test('each route is in the table, and is refused to whoever lacks its right', async () => {
  const routes: string[] = [];
  const watch = (message: unknown): void => {
    const { fastify } = message as { readonly fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const each of [method].flat()) routes.push(`${each} ${url}`);
    });
  };
  subscribe('fastify.initialization', watch);
  const server = await startServer({ inspect: true });
  unsubscribe('fastify.initialization', watch);
  const tokens = await tokensOf(server);

  expect([...routes].sort()).toEqual(Object.keys(routeRights).sort());
  for (const route of routes) {
    const needs = routeRights[route];
    const [method = '', url = ''] = route.split(' ');
    if (needs === undefined || needs === 'open' || route === 'DELETE /page/session') continue;
    const path = url.replaceAll(/:\w+|\*/g, 'x').replace('/agents/x', '/agents/engineer');
    for (const [right, given] of tokens) {
      const { status, body } = await send(server, path, given, { method });
      const refused = status === 403 && body.error.code === 'forbidden';
      expect([route, right, refused]).toEqual([route, right, !holds(right, needs)]);
    }
  }
  // A path that no route has is refused, too.
  expect(
    (await send(server, '/nothing', tokens.get('admin') ?? '', { method: 'GET' })).status,
  ).toBe(403);
  expect((await send(server, '/nothing', token, { method: 'GET' })).status).toBe(404);
});

test('each JSON-RPC method is in the table, with and without its prefix, refused and allowed', async () => {
  const server = await startServer();
  const tokens = await tokensOf(server);
  const methods = Object.keys(createMethods({} as never, () => null, {} as never, {} as never));

  expect([...methods].sort()).toEqual(Object.keys(methodRights).sort());
  for (const method of methods)
    for (const [right, given] of tokens)
      for (const name of [method, `a2a.${method}`]) {
        const answer = await call(server, given, name, { nothing: true });
        const needs = methodRights[method] ?? 'admin';
        // `runner` may not even ask.
        const found = right === 'runner' ? answer.error.needs && needs : isForbidden(answer);
        expect([name, right, found]).toEqual([name, right, holds(right, needs) ? null : needs]);
      }
});

test('a person with run answers in words; to allow a call is a review', async () => {
  const server = await startServer();
  const given = await makeToken(server, 'run');
  const about = { task_id: 'bd-none', attempt: 1, input_id: 'x' };

  expect(isForbidden(await call(server, given, 'respond', { ...about, decision: 'allow' }))).toBe(
    'review',
  );
  expect((await call(server, given, 'respond', { ...about, text: 'yes' })).error.data.code).toBe(
    'task_not_found',
  );
});

test('each operation of A2A is in the table, and is refused in the form of each binding', async () => {
  const server = await startServer();
  const tokens = await tokensOf(server);
  const names = (await call(server, token, 'Unknown', {}, '/a2a')).error.message
    .split('the methods are ')[1]
    .split(', ');

  expect([...names].sort()).toEqual(Object.keys(operationRights).sort());
  for (const name of names)
    for (const right of rights) {
      const needs = operationRights[name] ?? 'admin';
      const answer = await call(server, tokens.get(right) ?? '', name, { id: 'bd-x' }, '/a2a');
      expect([name, right, answer.error?.code === -32034]).toEqual([
        name,
        right,
        !holds(right, needs),
      ]);
    }
  const rest = await send(server, '/a2a/rest/message:send', tokens.get('read') ?? '', {
    body: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } },
  });
  expect([rest.status, rest.body.error.status]).toEqual([403, 'PERMISSION_DENIED']);
});

test('each tool of MCP is in the table, and is refused as a result that says so', async () => {
  const server = await startServer();
  const tokens = await tokensOf(server);

  expect(mcpToolNames('all').toSorted()).toEqual(Object.keys(toolRights).sort());
  for (const name of mcpToolNames('questions'))
    for (const right of rights) {
      const body = {
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: { name, arguments: { task_id: 'bd-none', nothing: true } },
      };
      const answer = await send(server, '/mcp', tokens.get(right) ?? '', { body });
      const code = answer.body.result.structuredContent.error.code;
      const needs = toolRights[name] ?? 'admin';
      expect([name, right, code === 'forbidden']).toEqual([name, right, !holds(right, needs)]);
    }
});

test('each command is in the table', () => {
  const names = commandTable.map(({ name }) => name);

  expect(names.toSorted()).toEqual(Object.keys(commandRights).sort());
  for (const { name, words } of commandTable) {
    const actions = words.find((word) => word.name === 'action')?.choices ?? [undefined];
    for (const action of actions)
      expect([name, action, needsOfCommand(name, action)]).not.toContain(null);
  }
});

test('a guessed token is refused as no token is, and guesses are throttled', async () => {
  const server = await startServer();
  const good = await makeToken(server, 'read');
  const guesses = [
    `${good.slice(0, -1)}x`,
    good.toUpperCase(),
    good.slice(4),
    `ats_${'A'.repeat(43)}`,
  ];

  for (const guess of guesses)
    expect((await send(server, '/metrics', guess, { method: 'GET' })).status).toBe(401);
  let status = 401;
  for (let tries = 0; tries < 25 && status === 401; tries += 1)
    ({ status } = await send(server, '/metrics', `ats_guess_${tries}`, { method: 'GET' }));

  expect(status).toBe(429);
  expect((await send(server, '/metrics', good, { method: 'GET' })).status).toBe(200);
});

test('a token is revoked during its stream, which ends; so do logins made with it', async () => {
  const server = await startServer();
  const given = await makeToken(server, 'read');
  const stream = await fetch(`${server.base}/stream`, {
    headers: { authorization: `Bearer ${given}` },
  });
  const { code } = (await send(server, '/page/codes', given)).body;
  const session = (await send(server, '/page/session', given, { body: { code } })).body.token;
  const who = await send(server, '/page/session', session, { method: 'GET' });

  expect([who.body.name, who.body.rights]).toEqual(['read', 'read']);
  expect(isForbidden(await call(server, session, 'create', { description: 'x' }))).toBe('run');
  const ended = stream.text();
  await call(server, token, 'token.revoke', { name: 'read' });

  await ended;
  for (const over of [given, session])
    expect((await send(server, '/metrics', over, { method: 'GET' })).status).toBe(401);
});

test('a token works until it expires, and its stream no longer', async () => {
  let at = Date.now();
  const server = await startServer({ now: () => at, heartbeatMs: 50 });
  const given = await makeToken(server, 'read', { expires_seconds: 60 });
  const stream = await fetch(`${server.base}/stream`, {
    headers: { authorization: `Bearer ${given}` },
  });

  at += 59_000;
  expect((await send(server, '/metrics', given, { method: 'GET' })).status).toBe(200);
  at += 1_000;

  await stream.text();
  expect((await send(server, '/metrics', given, { method: 'GET' })).status).toBe(401);
});

test('names are unique and plain, and no list, log line or journal entry has a token', async () => {
  const server = await startServer();
  const given = await makeToken(server, 'run');

  for (const name of ['owner', 'Ana', 'a b', '../x', 'a\nb', '-a', '', 'a'.repeat(65), '\u202eana'])
    expect(
      (await call(server, token, 'token.create', { name, rights: 'read' })).error.data.code,
    ).toBe('invalid_params');
  expect(
    (await call(server, token, 'token.create', { name: 'run', rights: 'admin' })).error.message,
  ).toContain('taken');
  const { tokens } = (await call(server, token, 'token.list')).result;
  const { lines } = (await call(server, token, 'audit')).result;
  await delay(0);

  expect(tokens).toEqual([{ name: 'run', rights: 'run', created_at: expect.any(String) }]);
  expect(JSON.stringify([tokens, lines])).not.toContain(given);
});

test('whoever ran a task does not merge it where policy.merge is not_author', async () => {
  const landing = { ...(await import('../support/running.ts')).landingDefaults, notAuthor: true };
  const server = await startServer({ turns: [finish()], options: { landing } });
  const [ana, bob] = [
    (await call(server, token, 'token.create', { name: 'ana', rights: 'review' })).result.token,
    (await call(server, token, 'token.create', { name: 'bob', rights: 'review' })).result.token,
  ];
  const { task_id } = (await call(server, ana, 'execute', { task: 'Say hello', role: 'engineer' }))
    .result;
  while ((await call(server, ana, 'status', { task_id })).result.status !== 'complete')
    await delay(20);

  const own = await call(server, ana, 'merge', { task_id });
  const many = await call(server, ana, 'merge_many', { task_ids: [task_id] });
  const other = await call(server, bob, 'merge', { task_id });

  expect(own.error.data).toEqual({ code: 'forbidden', needs: 'review', name: 'ana', ran: task_id });
  expect(own.error.message).toBe(
    `ana ran ${task_id}, and policy.merge is not_author: somebody else with the right review merges it`,
  );
  expect(many.result.refused).toMatchObject([{ task_id, code: 'forbidden' }]);
  expect(other.result.status).toBe('nothing');
});

test('text that no database keeps as it is leaves the audit log whole, and the server at work', async () => {
  const server = await startServer();
  const given = await makeToken(server, 'run');
  for (const workflow_id of ['\ud800', 'a\0b', `${'x'.repeat(99)}\u{1f600}`])
    await call(server, given, 'workflow.cancel', { workflow_id });

  const { lines } = (await call(server, token, 'audit')).result;
  const hashes = lines.map(({ at, task_id, about, ...line }: AuditView) =>
    hashOfLine({ ...line, at: Date.parse(at), taskId: task_id ?? null, about: about ?? null }),
  );
  expect(hashes).toEqual(lines.map(({ hash }: AuditView) => hash));
  expect(hashes).toHaveLength(4);
});

test('one request has at most 1,000 lines in the audit log', async () => {
  const server = await startServer();
  const given = await makeToken(server, 'run');
  const list = (from: number) => Array.from({ length: 1_000 }, (_, at) => `bd-${from + at}`);
  const inner = { task_ids: list(1_000), accepted: list(2_000) };
  const params = { task_ids: list(0), message: { ...inner, message: { items: list(3_000) } } };
  await call(server, given, 'cancel', params);

  expect((await call(server, token, 'audit', { limit: 1 })).result.end.seq).toBe(1_001);
});

test('a run that publishes its work needs review, whatever asks for it', async () => {
  const server = await startServer({ turns: [finish()] });
  const given = await makeToken(server, 'run');
  const reviewer = await makeToken(server, 'review');
  const options = { publish: true };
  const { task_id } = (await call(server, given, 'create', { description: 'x' })).result;
  const metadata = { 'urn:agent-task-server:a2a:task-graph:v1': { options } };
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], metadata };
  const tool = { name: 'run', arguments: { task_ids: [task_id], role: 'engineer', options } };

  for (const [method, params] of [
    ['execute', { task_id, role: 'engineer', options }],
    ['run', { task_ids: [task_id], role: 'engineer', options }],
    ['retry', { task_id, options }],
    ['SendMessage', { message }],
    ['SendStreamingMessage', { message }],
  ] as const)
    expect([method, (await call(server, given, method, params)).error?.code]).toEqual([
      method,
      -32034,
    ]);
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: tool };
  const answer = await send(server, '/mcp', given, { body });
  expect(answer.body.result.structuredContent.error.code).toBe('forbidden');
  const rest = await send(server, '/a2a/rest/message:send', given, { body: { message } });
  expect(rest.status).toBe(403);
  const allowed = { task_id, role: 'engineer', options };
  expect((await call(server, reviewer, 'execute', allowed)).result.task_id).toBe(task_id);
});
