import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { expect, onTestFinished, test } from 'vitest';
import { createMcpSession } from '../../../src/http/mcp/session.ts';
import { finish, startServer } from '../../support/running.ts';

const version = '2026-07-28';
const meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientCapabilities': {},
};
const message = (method: string, params: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method,
  params: { _meta: meta, ...params },
});

type Server = Awaited<ReturnType<typeof startServer>>;

const send = async (
  { base, headers }: Server,
  body: object,
  own: Readonly<Record<string, string>>,
) => {
  const answer = await fetch(`${base}/mcp`, {
    method: 'POST',
    headers: { ...headers, ...own },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
};
const headersOf = (method: string, name?: string) => ({
  'mcp-protocol-version': version,
  'mcp-method': method,
  ...(name === undefined ? {} : { 'mcp-name': name }),
});

test('the official client of 2026-07-28 creates a task over HTTP, runs it, and sees its progress', async () => {
  const server = await startServer({ turns: [finish('all good')] });
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: version } } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.base}/mcp`), {
      requestInit: { headers: { authorization: server.headers.authorization } },
    }),
  );
  onTestFinished(() => client.close());
  const progress: string[] = [];

  const { tools } = await client.listTools();
  const created = await client.callTool({
    name: 'create_task',
    arguments: { description: 'Serve' },
  });
  const { task_id } = created.structuredContent as { task_id: string };
  await client.callTool({ name: 'run', arguments: { task_ids: [task_id], role: 'engineer' } });
  const done = await client.callTool(
    { name: 'wait_for_task', arguments: { task_id } },
    { onprogress: (told) => progress.push(told.message ?? '') },
  );
  const view = await client.readResource({ uri: `task://${task_id}` });

  expect(client.getProtocolEra()).toBe('modern');
  expect(client.getInstructions()).toContain('run with a role (engineer, tester');
  expect(tools).toHaveLength(11);
  expect(done.structuredContent).toMatchObject({ status: 'complete' });
  expect(view.contents).toHaveLength(1);
  await expect(client.readResource({ uri: 'task://none' })).rejects.toMatchObject({ code: -32602 });
});

test('server/discover says what there is, and how long that may be kept', async () => {
  const answer = await send(
    await startServer(),
    message('server/discover'),
    headersOf('server/discover'),
  );

  expect(answer).toMatchObject({
    status: 200,
    body: {
      id: 7,
      result: {
        resultType: 'complete',
        supportedVersions: [version],
        capabilities: { tools: {}, resources: {} },
        ttlMs: 60_000,
        cacheScope: 'private',
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'agent-task-server' } },
      },
    },
  });
});

const call = message('tools/call', { name: 'list_tasks', arguments: {} });

test.each<[string, object, Readonly<Record<string, string>>, number, number]>([
  ['no version in the headers', call, {}, 400, -32020],
  [
    'an older version in the headers',
    call,
    { 'mcp-protocol-version': '2025-11-25', 'mcp-method': 'tools/call', 'mcp-name': 'list_tasks' },
    400,
    -32020,
  ],
  ['another method in the headers', call, headersOf('tools/list', 'list_tasks'), 400, -32020],
  ['no name in the headers', call, headersOf('tools/call'), 400, -32020],
  ['another name in the headers', call, headersOf('tools/call', 'merge'), 400, -32020],
  [
    'a name that is no base64',
    call,
    headersOf('tools/call', '=?base64?bGlzdF90YXNrcw?='),
    400,
    -32020,
  ],
  [
    'no metadata',
    { ...call, params: { name: 'list_tasks' } },
    headersOf('tools/call'),
    400,
    -32602,
  ],
  [
    'no capabilities',
    message('tools/list', { _meta: { 'io.modelcontextprotocol/protocolVersion': version } }),
    headersOf('tools/list'),
    400,
    -32602,
  ],
  [
    'a version to come',
    message('tools/list', {
      _meta: { ...meta, 'io.modelcontextprotocol/protocolVersion': '2099-01-01' },
    }),
    { ...headersOf('tools/list'), 'mcp-protocol-version': '2099-01-01' },
    400,
    -32022,
  ],
  ['initialize', message('initialize'), headersOf('initialize'), 404, -32601],
  ['an unknown method', message('prompts/list'), headersOf('prompts/list'), 404, -32601],
])('a request of 2026-07-28 with %s is refused', async (_, body, headers, status, code) => {
  const answer = await send(await startServer(), body, headers);

  expect(answer).toMatchObject({ status, body: { id: 7, error: { code } } });
});

test('a batch of 2026-07-28 is refused; a name may come as base64', async () => {
  const server = await startServer();

  const batch = await send(server, [call], headersOf('tools/call', 'list_tasks'));
  const encoded = await send(server, call, headersOf('tools/call', '=?base64?bGlzdF90YXNrcw==?='));

  expect(batch).toMatchObject({ status: 400, body: { error: { code: -32600 } } });
  expect(encoded).toMatchObject({ status: 200, body: { result: { resultType: 'complete' } } });
});

test('on standard input each request stands alone, beside those of an older client', async () => {
  const sent: object[] = [];
  const { take } = createMcpSession({
    identity: { name: 'server', version: '1' },
    send: (answer) => sent.push(answer),
    backend: {
      answerPolicy: () => 'questions',
      call: async () => ({ tasks: [] }),
      frames: async function* () {},
      describeError: (error) => ({ code: 'internal', message: String(error), facts: {} }),
    },
  });

  await take(JSON.stringify(message('resources/list')));
  await take(JSON.stringify({ jsonrpc: '2.0', id: 8, method: 'tools/list' }));
  await take(JSON.stringify(message('ping')));
  const params = { protocolVersion: version, capabilities: {} };
  await take(JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'initialize', params }));

  expect(sent).toMatchObject([
    { id: 7, result: { resources: [], resultType: 'complete', ttlMs: 0, cacheScope: 'private' } },
    { id: 8, error: { code: -32600 } },
    { id: 7, error: { code: -32601 } },
    { id: 9, result: { protocolVersion: '2025-11-25' } },
  ]);
});
