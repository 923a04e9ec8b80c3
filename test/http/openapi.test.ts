import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { createMethods } from '../../src/http/methods.ts';
import { openApiDocument } from '../../src/http/openapi.ts';
import { describedMethods } from '../../src/http/openapi-rpc.ts';
import { makeRepository, worktreesOf } from '../support/git.ts';
import { finish, hang, startServer, untilStatus } from '../support/running.ts';
import { readFrames } from '../support/sse.ts';

/** The server matches `GET /openapi.json`, checked by a strict validator. */

const servedMethods = Object.keys(
  createMethods({} as never, () => null, {} as never, {} as never),
).sort();
const pascal = (name: string): string =>
  name.replace(/(^|[_.])([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
type Server = Awaited<ReturnType<typeof startServer>>;
type Described = Readonly<
  Record<string, Readonly<Record<string, { responses: Readonly<Record<string, unknown>> }>>>
>;

/** The schemas of a document, which every server serves alike, are compiled once. */
const compiled = new Map<string, Ajv2020>();
const compile = (text: string): Ajv2020 => {
  const known = compiled.get(text);
  if (known !== undefined) return known;
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  compiled.set(text, ajv.addSchema(JSON.parse(text), 'api'));
  return ajv;
};

/** The reasons why a value is not what the document calls `name`; [] when it is. */
const problems = async ({ base, headers }: Server) => {
  const text = await (await fetch(`${base}/openapi.json`, { headers })).text();
  const ajv = compile(text);
  return {
    paths: (JSON.parse(text) as { paths: Described }).paths,
    of: (name: string, value: unknown) => {
      const validate = ajv.getSchema(`api#/components/schemas/${name}`);
      if (validate === undefined) return [`the document has no ${name}`];
      validate(value);
      return validate.errors ?? [];
    },
  };
};

test('real requests and answers of every method match the description', {
  tags: ['slow'],
}, async () => {
  const ask = { calls: [{ tool: 'ask', arguments: { question: 'red or blue?' } }] };
  const write = { calls: [{ tool: 'write', arguments: { path: 'b.txt', content: 'new' } }] };
  const server = await startServer({
    ...{ root: makeRepository(), turns: [write, ask, finish('so blue')] },
    workspace: (root, stateDir) => worktreesOf(root, join(stateDir, 'worktrees')),
  });
  const { of } = await problems(server);
  const seen = new Set<string>();
  const call = async (method: string, params: object = {}) => {
    const request = { jsonrpc: '2.0', id: 1, method, params };
    const { body } = await server.post(request);
    expect([method, of('RpcRequest', request), of(`${pascal(method)}Request`, request)]).toEqual([
      method,
      [],
      [],
    ]);
    expect([method, body.error, of('RpcAnswer', body)]).toEqual([method, undefined, []]);
    expect([method, of(`${pascal(method)}Result`, body.result)]).toEqual([method, []]);
    seen.add(method);
    return body.result;
  };

  const { task_id: first } = await call('create', {
    description: 'first',
    priority: 1,
    labels: ['x'],
  });
  const { task_id } = await call('create', { description: 'second' });
  await call('add_dependency', { task_id, depends_on: first });
  await call('list', { status: 'queued', limit: 1 });
  await call('remove_dependency', { task_id, depends_on: first });
  const { task_id: unwanted } = await call('create', { description: 'unwanted' });
  await call('edit', { task_id: unwanted, title: 'gone soon' });
  await call('delete', { task_id: unwanted });
  await call('execute', { task_id, role: 'engineer', options: { max_turns: 9 } });
  await readFrames(
    `${server.base}/stream/${task_id}?after=0`,
    server.headers,
    ({ event }) => event === 'input_required',
  );
  await call('status', { task_id });
  await call('respond', { task_id, attempt: 1, input_id: 'input-2', text: 'blue' });
  await untilStatus(server, task_id, 'complete');
  await call('status', { task_id });
  await call('history', { task_id, limit: 2 });
  await call('replay', { task_id });
  await call('explain', { task_id });
  await call('diff', { task_id, attempt: 1 });
  await call('usage', { since: '2026-01-01' });
  await call('cancel', { task_id: first, reason: 'not now' });
  await call('retry', { task_id: first, role: 'tester' });
  await readFrames(
    `${server.base}/stream/${first}?after=0`,
    server.headers,
    ({ event }) => event === 'input_required',
  );
  await call('cancel', { task_id: first });
  await call('close', { task_id: first, reason: 'done by hand' });
  await call('review', {
    ...{ task_id: first, attempt: 1, verdict: 'comment' },
    comments: [{ path: 'b.txt', line: 1, end_line: 1, text: 'why?' }],
  });
  await call('discard', { task_id: first, attempt: 1, reason: 'not needed' });
  await call('reopen', { task_id: first });
  await call('update', { task_id });
  // It has no remote, which is told.
  await call('publish', { task_id });
  await call('pull_request', { task_id });
  await call('import_issues', { labels: ['agent'], dry_run: true });
  await call('sources');
  const item = { name: 'line 1', title: 'Plan', description: 'Plan' };
  await call('import', { items: [{ ref: 'plan:1', depends_on: [task_id], ...item }] });
  await call('merge', { task_id, squash: true });
  await call('status', { task_id });
  await call('merge_many', { task_ids: [task_id] });
  await call('undo', { task_id });
  await call('run', { task_ids: [task_id], role: 'engineer' });
  expect((await call('decisions', {})).decisions).not.toEqual([]);
  await call('discovery');
  const { workflow_id } = await call('workflow.start', { kind: 'feature', name: 'Export' });
  await call('workflow.list');
  await call('workflow.show', { workflow_id });
  await call('workflow.cancel', { workflow_id, reason: 'not now' });
  await call('workflow.retry', { workflow_id });
  await call('token.create', { name: 'ana', rights: 'read', expires_seconds: 60 });
  await call('token.list');
  await call('token.revoke', { name: 'ana' });
  expect((await call('audit', { limit: 1_000 })).lines).not.toEqual([]);

  expect([...seen].sort()).toEqual(servedMethods);
  expect([...describedMethods].sort()).toEqual(servedMethods);
});

test.each([
  ['an unknown task', { jsonrpc: '2.0', id: 1, method: 'status', params: { task_id: 'bd-none' } }],
  ['an unknown method', { jsonrpc: '2.0', id: 1, method: 'fly' }],
  ['no request', {}],
  ['no JSON', '{'],
])('the answer to %s matches the description', async (_, request) => {
  const server = await startServer();
  const { of } = await problems(server);

  const { body } = await server.post(request);

  expect(body.error.message).toEqual(expect.any(String));
  expect(of('RpcAnswer', body)).toEqual([]);
});

const hello = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'list' });
const post = (more: RequestInit = {}): RequestInit => ({ method: 'POST', body: hello, ...more });
const typed = (type: string) => ({ headers: { 'content-type': type } });
const anonymous = { headers: { authorization: '' } };

test.each<readonly [number, string, string, RequestInit]>([
  [401, '/a2a/execute', '/a2a/execute', post(anonymous)],
  [401, '/stream/{task_id}', '/stream/bd-1', anonymous],
  [401, '/metrics', '/metrics', anonymous],
  [403, '/health', '/health', { headers: { origin: 'http://evil.example' } }],
  [
    403,
    '/a2a/status',
    '/a2a/status',
    post({ headers: { origin: 'null', 'content-type': 'application/json' } }),
  ],
  [404, '/stream/{task_id}', '/stream/bd-none', {}],
  [404, '/inspect', '/inspect', {}],
  [400, '/stream', '/stream?after=x', {}],
  [413, '/a2a/execute', '/a2a/execute', post({ body: 'x'.repeat(1024 * 1024 + 1) })],
  [414, '/metrics', `/metrics?${'x'.repeat(2_048)}`, {}],
  [415, '/a2a/discovery', '/a2a/discovery', post(typed('text/plain'))],
])('%d of %s is described', async (status, route, path, init) => {
  const server = await startServer();
  const { of, paths } = await problems(server);

  const response = await fetch(server.base + path, {
    ...init,
    headers: { ...server.headers, ...init.headers },
  });

  expect(response.status).toBe(status);
  expect(of('Error', await response.json())).toEqual([]);
  expect(
    Object.keys(paths[route]?.[(init.method ?? 'GET').toLowerCase()]?.responses ?? {}),
  ).toContain(`${status}`);
});

test('too many requests and too many streams are described', async () => {
  const server = await startServer({ turns: [hang], requestsPerSecond: 1 });
  const { of, paths } = await problems(server);
  const { task_id } = await server.service.create({ description: 'a task' });
  const open = async (path: string) => fetch(server.base + path, { headers: server.headers });
  const held = await Promise.all(Array.from({ length: 8 }, () => open(`/stream/${task_id}`)));

  const ninth = await open(`/stream/${task_id}`);
  held.push(await open('/stream'), await open('/stream'));
  const eleventh = await open('/stream');
  const asked = await Promise.all(Array.from({ length: 20 }, () => server.post(hello)));
  const refused = asked.find(({ status }) => status === 429);

  expect([ninth.status, eleventh.status]).toEqual([429, 503]);
  for (const body of [await ninth.json(), await eleventh.json(), refused?.body])
    expect(of('Error', body)).toEqual([]);
  for (const [route, method, status] of [
    ['/stream/{task_id}', 'get', '429'],
    ['/stream', 'get', '503'],
    ['/a2a/execute', 'post', '429'],
    ['/health', 'get', '503'],
    ['/health/ready', 'get', '503'],
  ] as const)
    expect([route, Object.keys(paths[route]?.[method]?.responses ?? {})]).toEqual([
      route,
      expect.arrayContaining([status]),
    ]);
  for (const response of held) await response.body?.cancel();
});

test('the description names its server', () => {
  expect(openApiDocument('agent-task-server', '2.1.0')).toMatchObject({
    openapi: '3.1.0',
    info: { version: '2.1.0' },
  });
});
