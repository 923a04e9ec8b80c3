import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { AnswerPolicy } from '../../../src/http/mcp/backend.ts';
import { finish, hang, startServer, untilStatus } from '../../support/running.ts';

const ask = { calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };

type Server = Awaited<ReturnType<typeof startServer>>;

/** The official client over HTTP. */
const connect = async ({ base, headers }: Pick<Server, 'base' | 'headers'>) => {
  const client = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { authorization: headers.authorization } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${base}/mcp`), { requestInit }));
  onTestFinished(() => client.close());
  return client;
};
const call = (client: Client, name: string, args: Record<string, unknown> = {}) =>
  client.callTool({ name, arguments: args });
const message = (method: string, params: object = {}, id: unknown = 1) => ({
  ...{ jsonrpc: '2.0', id, method, params },
});

test('the official client creates a task over HTTP, runs it, answers it, and sees its progress', async () => {
  // Long enough to be seen at work.
  const work = { calls: [{ tool: 'bash', arguments: { command: 'sleep 0.5' } }] };
  const server = await startServer({ turns: [ask, work, finish('all good')] });
  const client = await connect(server);
  const progress: string[] = [];
  const wait = (task_id: string) =>
    client.callTool({ name: 'wait_for_task', arguments: { task_id } }, undefined, {
      onprogress: (told) => progress.push(told.message ?? ''),
    });

  const { tools } = await client.listTools();
  const created = await call(client, 'create_task', { description: 'Serve' });
  const { task_id } = created.structuredContent as { task_id: string };
  await call(client, 'run', { task_ids: [task_id], role: 'engineer' });
  const asked = (await wait(task_id)).structuredContent as {
    attempt: number;
    awaiting: { input_id: string; question: string };
  };
  const { attempt, awaiting } = asked;
  await call(client, 'answer', { task_id, attempt, input_id: awaiting.input_id, text: '8080' });
  const done = await wait(task_id);
  const again = await wait(task_id);

  expect(tools).toHaveLength(11);
  expect(client.getInstructions()).toContain('run with a role (engineer, tester');
  expect(awaiting.question).toBe('Which port?');
  expect(done.structuredContent).toMatchObject({ status: 'complete' });
  expect(again.structuredContent).toMatchObject({ status: 'complete' });
  expect(progress).toContainEqual(expect.stringMatching(/^started \(/));
});

const bash = { calls: [{ tool: 'bash', arguments: { command: 'true' } }] };

/** A task whose call waits for approval, and the arguments that allow it. */
const askApproval = async (mcpAnswer: AnswerPolicy) => {
  const server = await startServer({
    ...{ turns: [bash, finish('done')], mcpAnswer: () => mcpAnswer },
    role: { approvals: ['bash'] },
  });
  const client = await connect(server);
  const created = await call(client, 'create_task', { description: 'Serve' });
  const { task_id } = created.structuredContent as { task_id: string };
  await call(client, 'run', { task_ids: [task_id], role: 'engineer' });
  const asked = await call(client, 'wait_for_task', { task_id });
  const { attempt, awaiting } = asked.structuredContent as {
    attempt: number;
    awaiting: { input_id: string; kind: string };
  };
  expect(awaiting.kind).toBe('approval');
  return { client, given: { task_id, attempt, input_id: awaiting.input_id } };
};

test('by default an assistant cannot decide on calls that need approval', async () => {
  const { client, given } = await askApproval('questions');

  const decided = await call(client, 'answer', { ...given, decision: 'allow' });
  const both = await call(client, 'answer', { ...given, text: 'yes', decision: 'allow' });
  const inWords = await call(client, 'answer', { ...given, text: 'allow' });
  const after = await call(client, 'task_status', { task_id: given.task_id });

  for (const refused of [decided, both, inWords])
    expect(refused).toMatchObject({
      isError: true,
      structuredContent: { error: { code: 'invalid_params' } },
    });
  expect(after.structuredContent).toMatchObject({ awaiting: { input_id: given.input_id } });
});

test('with the policy all an assistant decides on calls that need approval', async () => {
  const { client, given } = await askApproval('all');

  await call(client, 'answer', { ...given, decision: 'allow' });
  const done = await call(client, 'wait_for_task', { task_id: given.task_id });

  expect(done.structuredContent).toMatchObject({ status: 'complete' });
});

test('with the policy off there is no tool answer', async () => {
  const client = await connect(await startServer({ mcpAnswer: () => 'off' }));

  const { tools } = await client.listTools();
  const refused = call(client, 'answer', {});

  expect(tools.map(({ name }) => name)).not.toContain('answer');
  await expect(refused).rejects.toThrow('unknown tool answer');
});

test('a wait of a client that left ends, and its stream is free again', async () => {
  const server = await startServer({ turns: [hang] });
  const { task_id } = (await server.call('create', { description: 'x' })).result;
  await server.call('execute', { task_id, role: 'engineer' });
  await untilStatus(server, task_id, 'started');
  const leave = new AbortController();
  let following = 0;
  const subscribe = server.store.subscribe.bind(server.store);
  vi.spyOn(server.store, 'subscribe').mockImplementation((...given) => {
    following += 1;
    const end = subscribe(...given);
    return () => {
      following -= 1;
      end();
    };
  });
  const params = { name: 'wait_for_task', arguments: { task_id }, _meta: { progressToken: 1 } };
  const open = () =>
    fetch(`${server.base}/mcp`, {
      method: 'POST',
      headers: { ...server.headers, accept: 'application/json, text/event-stream' },
      body: JSON.stringify(message('tools/call', params)),
      signal: leave.signal,
    });

  const answers = await Promise.all(Array.from({ length: 11 }, open));
  const refused = answers.filter(({ status }) => status === 503);
  const buffered = answers.map(({ headers }) => headers.get('x-accel-buffering'));
  await vi.waitFor(() => expect(following).toBe(10));
  expect(buffered.filter((value) => value === 'no')).toHaveLength(10);
  leave.abort();

  expect(refused).toHaveLength(1);
  await vi.waitFor(() => expect(following).toBe(0));
  await vi.waitFor(async () => {
    const next = await fetch(`${server.base}/stream`, { headers: server.headers });
    await next.body?.cancel();
    expect(next.status).toBe(200);
  });
});

test.each<[string, RequestInit, number, string]>([
  ['no token', { headers: { 'content-type': 'application/json' } }, 401, 'unauthorized'],
  ['a foreign origin', { headers: { origin: 'http://evil.example' } }, 403, 'forbidden'],
  ['an unknown version', { headers: { 'mcp-protocol-version': '1999' } }, 400, 'invalid_request'],
  ['GET', { method: 'GET' }, 405, 'method_not_allowed'],
  ['DELETE', { method: 'DELETE' }, 405, 'method_not_allowed'],
  ['no JSON type', { headers: { 'content-type': 'text/plain' } }, 415, 'unsupported_media_type'],
  ['more than 1 MiB', { body: 'x'.repeat(1024 * 1024 + 1) }, 413, 'payload_too_large'],
])('%s is refused', async (what, init, status, code) => {
  const server = await startServer();
  const { 'content-type': json, authorization } = server.headers;
  const given = what === 'no token' ? {} : { authorization };
  const { method = 'POST', body = JSON.stringify(message('ping')) } = init;

  const answer = await fetch(`${server.base}/mcp`, {
    method,
    ...(method === 'POST' ? { body } : {}),
    headers: {
      ...(method === 'POST' ? { 'content-type': json } : {}),
      ...given,
      ...Object(init.headers),
    },
  });

  expect(await answer.json()).toMatchObject({ error: { code } });
  expect(answer.status).toBe(status);
});

test('messages that want no answer get none; broken ones say what is wrong', async () => {
  const { post } = await startServer();

  expect(await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, '/mcp')).toEqual({
    status: 202,
    body: null,
  });
  expect(await post('{', '/mcp')).toMatchObject({ status: 400, body: { error: { code: -32700 } } });
  expect(await post(message('ping'), '/mcp')).toEqual({
    status: 200,
    body: { jsonrpc: '2.0', id: 1, result: {} },
  });
});

test('an unexpected failure goes to the log, and its text to nobody', async () => {
  const server = await startServer();
  vi.spyOn(server.system.service, 'list').mockRejectedValue(new Error('secret detail'));

  const answer = await server.post(message('tools/call', { name: 'list_tasks' }), '/mcp');

  expect(JSON.stringify(answer.body)).toContain('the server log has the details');
  expect(JSON.stringify(answer.body)).not.toContain('secret detail');
});

test('a refusal names tools, not commands that an assistant does not have', async () => {
  const server = await startServer({ turns: [hang] });
  const client = await connect(server);
  const create = async (args: object): Promise<string> => {
    const made = await call(client, 'create_task', { description: 'x', ...args });
    return (made.structuredContent as { task_id: string }).task_id;
  };
  const [roleless, busy, over] = [await create({}), await create({}), await create({})];
  await call(client, 'run', { task_ids: [busy], role: 'engineer' });
  await server.call('close', { task_id: over });

  const unknown = await call(client, 'task_status', { task_id: 'bd-none' });
  const early = await call(client, 'merge', { task_id: busy, attempt: 1 });
  const ran = await call(client, 'run', { task_ids: [roleless, busy, over] });

  const skipped = (ran.structuredContent as { skipped: { reason: string }[] }).skipped;
  const said = [unknown, early, ran].map((answer) => JSON.stringify(answer.content)).join('\n');
  expect(JSON.stringify(unknown.content)).toContain('list_tasks shows the tasks');
  expect(JSON.stringify(early.content)).toContain('explain says why');
  expect(skipped.map(({ reason }) => reason)).toEqual([
    expect.stringContaining('give run a role'),
    expect.stringContaining('wait_for_task follows it'),
    'it is complete',
  ]);
  expect(said).not.toMatch(/\bagent (list|edit|reopen|cancel|logs|show|retry)\b/);
});
