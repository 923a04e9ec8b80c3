import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { readRun } from '../../../src/http/a2a/read-run.ts';
import { sendMessage } from '../../../src/http/a2a/send.ts';
import { makeRepository, worktreesOf } from '../../support/git.ts';
import {
  bash,
  finish,
  hang,
  type Setting,
  startServer,
  untilStatus,
} from '../../support/running.ts';

/** Rules of A2A 1.0 on headers, frames and events. */

const extension = 'urn:agent-task-server:a2a:task-graph:v1';
const ask = { calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };
// biome-ignore lint/suspicious/noExplicitAny: what is expected of each answer is in its test
type Loose = any;

const start = async (setting?: Setting) => {
  const server = await startServer(setting);
  const { base, headers } = server;
  const post = async (
    path: string,
    body: string,
    more: Record<string, string> = {},
  ): Promise<Loose> => {
    const sent = { ...headers, ...more };
    const response = await fetch(`${base}${path}`, { method: 'POST', headers: sent, body });
    const { status, headers: got } = response;
    return {
      status,
      type: got.get('content-type'),
      headers: got,
      ...((await response.json()) as object),
    };
  };
  const call = (method: string, params: object, more: Record<string, string> = {}) =>
    post('/a2a', JSON.stringify({ jsonrpc: '2.0', id: 'c-1', method, params }), more);
  const message = (text: string, more: object = {}) => ({
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }], ...more },
  });
  const send = (text: string, more: object = {}) => call('SendMessage', message(text, more));
  const begin = async (text: string): Promise<string> => {
    const now = { ...message(text), configuration: { returnImmediately: true } };
    return (await call('SendMessage', now)).result.task.id;
  };
  /** All events of a stream, up to its end. */
  const stream = async (method: string, params: object): Promise<readonly Loose[]> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 'c-1', method, params });
    const response = await fetch(`${base}/a2a`, { method: 'POST', headers, body });
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    return [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data = '']) =>
      JSON.parse(data),
    );
  };
  return { ...server, server, post, call, send, begin, message, stream };
};

const reasonOf = ({ error }: Loose) => error.data?.[0]?.reason;
const stateOf = ({ result: { task, statusUpdate } }: Loose) => (task ?? statusUpdate)?.status.state;

test('§5.7 members that nobody knows are ignored', async () => {
  const { call } = await start({ turns: [finish()] });
  const parts = [{ text: 'x', colour: 'red' }];
  const message = { messageId: 'm', role: 'ROLE_USER', parts, later: { a: 1 } };

  const { result } = await call('SendMessage', { message, newer: true });

  expect(result.task.status.state).toBe('TASK_STATE_COMPLETED');
});

test('§5.5 names of the protocol, null, numbers of enums and integers as text are read', async () => {
  const { call, base, headers } = await start({ turns: [finish()] });
  const parts = [{ data: { some_key: null }, media_type: 'application/json', text: null }];
  const message = { message_id: 'm', role: 1, parts, context_id: 'c_1', task_id: null };
  const configuration = { history_length: '0', return_immediately: false, task_push: null };

  const { result } = await call('SendMessage', { message, configuration, metadata: null });
  const { id } = result.task;
  const all = (await call('GetTask', { id, history_length: 5, tenant: null })).result;
  const over = (await call('ListTasks', { status: 3, context_id: 'c_1', page_size: '1' })).result;
  const query = 'context_id=c_1&include_artifacts=true&history_length=1';
  const rest: Loose = await (await fetch(`${base}/a2a/rest/tasks?${query}`, { headers })).json();
  const twice = await call('GetTask', { id, historyLength: 1, history_length: 1 });

  expect([result.task.contextId, result.task.history]).toEqual(['c_1', undefined]);
  expect(JSON.parse(all.history[0].parts[0].text.split('```')[1].slice(4))).toEqual({
    some_key: null,
  });
  expect([over.tasks.length, over.pageSize]).toEqual([1, 1]);
  expect([rest.tasks[0].artifacts.length > 0, rest.tasks[0].history.length]).toEqual([true, 1]);
  expect(twice.error).toMatchObject({
    code: -32602,
    message: expect.stringContaining('historyLength: is given twice'),
  });
});

test('§5.5 a null that has a meaning, or is none of a member, is not left out', async () => {
  const { call, message } = await start({ turns: [finish()] });
  const given = (parts: unknown) => ({ message: { ...message('').message, parts } });

  const value = await call('SendMessage', given([{ data: null }]));
  const item = await call('SendMessage', given([null]));
  const needed = await call('SendMessage', given(null));

  expect(value.result.task.history[0].parts[0].text).toContain('null');
  expect([item.error.code, needed.error.code]).toEqual([-32602, -32602]);
  expect(needed.error.message).toContain('message.parts');
});

test('§9 the address of JSON-RPC, of REST and of MCP may end with a slash', async () => {
  const { post, base, headers } = await start({ turns: [finish()] });
  const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} });
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  const unknown = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'None', params: {} });

  const [plain, ofRole, mcp, refused] = await Promise.all([
    post('/a2a/', list),
    post('/agents/tester/a2a/', list),
    post('/mcp/', ping),
    post('/a2a/', unknown),
  ]);
  const rest = await fetch(`${base}/a2a/rest/tasks/?pageSize=1`, { headers });
  const verb = await fetch(`${base}/a2a/`, { headers });

  expect([plain.result.tasks, ofRole.result.tasks, mcp.result]).toEqual([[], [], {}]);
  expect(refused.error.message).toContain('the methods are SendMessage');
  expect([rest.status, verb.status, verb.headers.get('allow')]).toEqual([200, 405, 'POST']);
});

test('§9.5 a body that cannot be read is an error of A2A, with a code that is a number', async () => {
  const { post } = await start();
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} });

  const answers = await Promise.all([
    post('/a2a', body, { 'content-type': 'text/plain' }),
    post('/agents/tester/a2a', body, { 'content-type': 'application/json; charset=latin1' }),
    post('/a2a', `"${'x'.repeat(1_100_000)}"`),
  ]);

  expect(answers.map(({ status, id, error }) => [status, id, error.code])).toEqual([
    [415, null, -32005],
    [415, null, -32005],
    [413, null, -32602],
  ]);
  expect(answers[0].error.data[0].reason).toBe('CONTENT_TYPE_NOT_SUPPORTED');
});

test('§9.4 each frame is an answer to the call; the task is first, a terminal state is last', async () => {
  const { stream, message } = await start({ turns: [bash('true'), finish('done')] });
  const immediately = { configuration: { returnImmediately: true } };

  const frames = await stream('SendStreamingMessage', { ...message('One'), ...immediately });

  expect(frames.every(({ jsonrpc, id }) => jsonrpc === '2.0' && id === 'c-1')).toBe(true);
  expect(frames.every(({ result }) => Object.keys(result).length === 1)).toBe(true);
  expect(Object.keys(frames[0].result)).toEqual(['task']);
  expect(stateOf(frames.at(-1))).toBe('TASK_STATE_COMPLETED');
  expect(JSON.stringify(frames)).not.toMatch(/"final"|"kind"/);
});

test('§3.5.2 all streams of a task have the same events in the same order', async () => {
  const { stream, begin, send, server } = await start({
    turns: [ask, bash('true'), finish('done')],
  });
  const id = await begin('One');
  await untilStatus(server, id, 'started');

  const streams = [stream('SubscribeToTask', { id }), stream('SubscribeToTask', { id })];
  await expect.poll(async () => (await server.service.status(id)).phase).toBe('awaiting_input');
  await send('8080', { taskId: id });
  const [one, other] = await Promise.all(streams);
  // The first frame of each is the task as it was when the stream began.
  const shared = Math.min(one?.length ?? 0, other?.length ?? 0) - 1;

  expect(shared).toBeGreaterThan(3);
  expect(one?.slice(-shared)).toEqual(other?.slice(-shared));
  expect(stateOf(one?.at(-1))).toBe('TASK_STATE_COMPLETED');
});

test('§7.6 the stream of a message stays open while a person is asked for approval', async () => {
  const { stream, message, server } = await start({
    turns: [bash('true'), finish('done')],
    role: { approvals: ['bash'] },
  });
  const reading = stream('SendStreamingMessage', message('One'));
  const asked = await expect
    .poll(async () => (await server.service.list({})).tasks[0])
    .toMatchObject({ phase: 'awaiting_approval' })
    .then(async () => (await server.service.list({})).tasks[0]);
  const inputId = asked?.awaiting?.input_id ?? '';

  await server.service.respond(asked?.task_id ?? '', 1, {
    ...{ type: 'respond', inputId, text: null, decision: 'allow' },
  });
  const states = (await reading).map(stateOf).filter((state) => state !== undefined);

  expect(states).toContain('TASK_STATE_AUTH_REQUIRED');
  expect(states.at(-1)).toBe('TASK_STATE_COMPLETED');
});

test('§4.2 appended parts are one artifact when the task is read', async () => {
  const { stream, message, call } = await start({
    turns: [
      { say: 'I look.', ...bash('true') },
      { say: 'Found.', ...finish('done') },
    ],
  });

  const frames = await stream('SendStreamingMessage', message('One'));
  const { id } = frames[0].result.task;
  const pieces = frames
    .map(({ result }) => result.artifactUpdate)
    .filter((update) => update?.artifact.artifactId === 'transcript');
  const { artifacts } = (await call('GetTask', { id })).result;
  const read = artifacts.find((each: Loose) => each.artifactId === 'transcript');
  const ids = artifacts.map((each: Loose) => each.artifactId);

  expect(pieces.map(({ append }) => append === true)).toEqual(pieces.map((_, nth) => nth > 0));
  expect(read.parts.map((part: Loose) => part.text).join('')).toBe(
    pieces.flatMap(({ artifact }) => artifact.parts.map((part: Loose) => part.text)).join(''),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

/** An agent whose first call ends when the file `go` is there. */
const waitsForGo = bash('until [ -e go ]; do sleep 0.05; done');

test('§3.4 a message to a task that is at work is given to its agent, once for each key', async () => {
  const { begin, call, message, server } = await start({ turns: [waitsForGo, finish('done')] });
  const id = await begin('One');
  await untilStatus(server, id, 'started');
  const now = { configuration: { returnImmediately: true } };
  const tell = () =>
    call(
      'SendMessage',
      { ...message('And two', { taskId: id }), ...now },
      { 'idempotency-key': 'k-2' },
    );

  const answers = [await tell(), await tell()];
  writeFileSync(join(server.root, 'go'), '');
  await untilStatus(server, id, 'complete');
  const { history } = (await call('GetTask', { id })).result;

  expect(answers.map(stateOf)).toEqual(['TASK_STATE_WORKING', 'TASK_STATE_WORKING']);
  const users = history.filter(({ role }: Loose) => role === 'ROLE_USER');
  expect(users.map(({ parts }: Loose) => parts[0].text)).toEqual(['One', 'And two']);
  expect(JSON.stringify(await server.store.read({ taskId: id, after: 0, limit: 1_000 }))).toContain(
    'a person says: And two',
  );
});

test('§3.4 a message to a task whose attempt begins at this moment reaches its agent', async () => {
  const { call, message, server } = await start({
    turns: [bash('touch begun; until [ -e go ]; do sleep 0.05; done'), finish('done')],
  });
  const { service, store, root } = server;
  const before = await service.create({ description: 'before' });
  const own = { metadata: { [extension]: { dependsOn: [before.task_id] } } };
  const now = { configuration: { returnImmediately: true } };
  const { id } = (await call('SendMessage', { ...message('One', own), ...now })).result.task;
  const edit: typeof service.edit = async (...given) => {
    await service.close(before.task_id, null);
    await vi.waitFor(() => expect(existsSync(join(root, 'begun'))).toBe(true), 20_000);
    return service.edit(...given);
  };

  const reads = { store, status: service.status };
  const ports = {
    service: { ...service, edit },
    read: (run: string) => readRun(reads, run),
    store,
  };
  const parts = [{ text: 'And two' }];
  const to = { tenant: undefined, role: null, idempotencyKey: null, by: 'owner' };
  await sendMessage(ports, { messageId: 'm', role: 'ROLE_USER', taskId: id, parts }, to);
  writeFileSync(join(root, 'go'), '');
  await untilStatus(server, id, 'complete');

  expect(JSON.stringify(await store.read({ taskId: id, after: 0, limit: 1_000 }))).toContain(
    'a person says: And two',
  );
});

test('§3.4 a message to a task that is verified is kept for its agent; its result says when none read it', async () => {
  const options = { verify: ['until [ -e go ]; do sleep 0.05; done'] };
  const { call, message, send, server } = await start({ turns: [finish('done')] });
  const given = message('One', { metadata: { [extension]: { options } } });
  const begun = await call('SendMessage', { ...given, configuration: { returnImmediately: true } });
  const { id } = begun.result.task;
  await vi.waitFor(async () => expect((await server.service.status(id)).phase).toBe('verifying'));

  const now = { configuration: { returnImmediately: true } };
  const answer = await call('SendMessage', { ...message('And two', { taskId: id }), ...now });
  writeFileSync(join(server.root, 'go'), '');
  await untilStatus(server, id, 'complete');
  const task = (await call('GetTask', { id })).result;
  const late = await send('And three', { taskId: id });

  expect(answer.result.task.id).toBe(id);
  const users = task.history.filter(({ role }: Loose) => role === 'ROLE_USER');
  expect(users.map(({ parts }: Loose) => parts[0].text)).toEqual(['One', 'And two']);
  const folder = join(server.root, '.beads', 'tasks', `task-${id}`);
  expect(readFileSync(join(folder, '30-results.md'), 'utf8')).toContain('> And two');
  expect(reasonOf(late)).toBe('UNSUPPORTED_OPERATION');
});

test.each<[string, (text: string) => readonly [object, Record<string, string>]]>([
  ['a header', () => [{}, { 'idempotency-key': 'k-1' }]],
  ['metadata', () => [{ metadata: { [extension]: { request_id: 'k-1' } } }, {}]],
])(
  '§3.3.1 a message that its client repeats under a key in %s begins one task',
  async (_, keyed) => {
    const { call, message, service } = await start({ turns: [finish('done')] });
    const ask = async (text: string): Promise<string> => {
      const [more, headers] = keyed(text);
      return (await call('SendMessage', message(text, more), headers)).result.task.id;
    };

    const same = await Promise.all([ask('One'), ask('One')]);
    const [later, other] = [await ask('One'), await ask('Two')];

    expect(new Set([...same, later]).size).toBe(1);
    expect(other).not.toBe(later);
    expect((await service.list({})).tasks).toHaveLength(2);
  },
);

test('§3.3.1 a message that could not run is run when it is repeated under its key', async () => {
  const { call, message, service } = await start({ model: null });
  const ask = () => call('SendMessage', message('One'), { 'idempotency-key': 'k-1' });

  const answers = [await ask(), await ask()];

  const tasks = answers.map(({ result }) => [result.task.id, result.task.status.state]);
  expect(tasks[0]).toEqual(tasks[1]);
  expect(tasks[0]?.[1]).toBe('TASK_STATE_AUTH_REQUIRED');
  expect((await service.list({})).tasks).toHaveLength(1);
});

test('a text that looks like the id of a task is text', async () => {
  const { send, service } = await start({ turns: [finish('done')] });
  const { task_id } = await service.create({ description: 'First' });

  const { result } = await send(task_id);

  expect(result.task.id).not.toBe(task_id);
});

test('§9.5 the errors of JSON-RPC have its codes; HTTP 400 is for what is no call', async () => {
  const { post } = await start();
  const bodies = [
    '{',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"method":"tasks/unknown"}',
    '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}',
  ];

  const answers = await Promise.all(bodies.map((body) => post('/a2a', body)));

  expect(answers.map(({ error }) => error.code)).toEqual([-32700, -32600, -32601, -32602]);
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 200, 200]);
});

test('§9.5 a method of A2A never answers with a code of our own', async () => {
  const { call, begin, server } = await start({ turns: [hang] });
  const id = await begin('One');
  await untilStatus(server, id, 'started');
  const noPush = { taskId: id, id: 'none' };

  const answers = await Promise.all([
    call('GetTask', { id: 'bd-none' }),
    call('SubscribeToTask', { id: 'bd-none' }),
    call('GetTaskPushNotificationConfig', noPush),
    call('CreateTaskPushNotificationConfig', { taskId: id, url: 'http://10.0.0.1' }),
  ]);

  expect(answers.map(({ error }) => error.code)).toEqual([-32001, -32001, -32001, -32602]);
  for (const { error } of answers)
    expect(Object.keys(error).every((key) => ['code', 'message', 'data'].includes(key))).toBe(true);
  for (const { error } of answers.slice(0, 3))
    expect(error.data).toContainEqual(
      expect.objectContaining({
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        ...{ reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' },
      }),
    );
});

test('§11.3 a push config is made with 200 and deleted with 200 and an empty object', async () => {
  const { begin, post, base, headers } = await start({ turns: [hang] });
  const id = await begin('One');
  const path = `/a2a/rest/tasks/${id}/pushNotificationConfigs`;

  const made = await post(path, JSON.stringify({ url: 'http://127.0.0.1:9/hook' }));
  const gone = await fetch(`${base}${path}/${made.id}`, { method: 'DELETE', headers });

  expect([made.status, made.taskId, gone.status, await gone.json()]).toEqual([200, id, 200, {}]);
});

test('§11.3 an id in a path may have a slash and a percent sign; what cannot be decoded says so', async () => {
  const { post, begin, base, headers } = await start({ turns: [hang] });
  const path = `/a2a/rest/tasks/${await begin('One')}/pushNotificationConfigs`;
  const own = { id: 'a/b 100%', url: 'http://127.0.0.1:9/hook' };
  await post(path, JSON.stringify(own));

  const read = await fetch(`${base}${path}/${encodeURIComponent(own.id)}`, { headers });
  const broken = await fetch(`${base}${path}/%zz`, { headers });

  expect([read.status, await read.json()]).toEqual([200, expect.objectContaining(own)]);
  expect([broken.headers.get('content-type'), await broken.json()]).toEqual([
    'application/a2a+json; charset=utf-8',
    {
      error: expect.objectContaining({
        ...{ code: 400, status: 'INVALID_ARGUMENT' },
        message: expect.stringContaining('path: cannot be decoded'),
      }),
    },
  ]);
});

test('§11.2 a body in another charset than UTF-8 is refused', async () => {
  const { post } = await start();
  const type = 'application/a2a+json; charset=latin1';

  const { status, error } = await post('/a2a/rest/message:send', '{}', { 'content-type': type });

  expect([status, error.details[0].reason]).toEqual([400, 'CONTENT_TYPE_NOT_SUPPORTED']);
});

test('§9.4 a call of a stream that is no call of JSON-RPC is refused as any other', async () => {
  const { post, message } = await start({ turns: [finish()] });
  const call = { jsonrpc: '2.0', id: 1, more: 1, params: message('One') };

  const plain = await post('/a2a', JSON.stringify({ ...call, method: 'SendMessage' }));
  const stream = await post('/a2a', JSON.stringify({ ...call, method: 'SendStreamingMessage' }));

  expect([plain.status, plain.error.message]).toEqual([
    400,
    'not a JSON-RPC 2.0 request: more: is not known here',
  ]);
  expect([stream.status, stream.error]).toEqual([plain.status, plain.error]);
});

test('§3.6 with a2a.strict_version a request without a version is one of 0.3', async () => {
  const { call, base, headers } = await start({ a2a: { isStrict: true } });

  const without = await call('ListTasks', {});
  const named = await call('ListTasks', {}, { 'a2a-version': '1.0' });
  const rest = await fetch(`${base}/a2a/rest/tasks`, { headers });
  const query = await fetch(`${base}/a2a/rest/tasks?A2A-Version=1.0`, { headers });

  expect([reasonOf(without), named.result.tasks]).toEqual(['VERSION_NOT_SUPPORTED', []]);
  expect([rest.status, query.status]).toEqual([400, 200]);
});

test('§4.6 a client of 0.3 names extensions in a header of its own', async () => {
  const { call } = await start({ a2a: { versions: ['1.0', '0.3'] } });

  const { headers } = await call('tasks/get', { id: 'x' }, { 'x-a2a-extensions': extension });

  expect(headers.get('x-a2a-extensions')).toBe(extension);
  expect(headers.get('a2a-extensions')).toBeNull();
});

test('§8 behind a proxy the cards name the configured address, whatever its headers say', async () => {
  const publicUrl = 'https://tasks.example/a';
  const { base } = await start({ a2a: { publicUrl } });
  const forwarded = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' };

  const read = async (path: string): Promise<Loose> =>
    (await fetch(`${base}${path}/.well-known/agent-card.json`, { headers: forwarded })).json();
  const [all, role] = [await read(''), await read('/agents/tester')];

  expect([...all.supportedInterfaces, ...role.supportedInterfaces].map(({ url }) => url)).toEqual([
    `${publicUrl}/a2a`,
    `${publicUrl}/a2a/rest`,
    `${publicUrl}/agents/tester/a2a`,
    `${publicUrl}/agents/tester/a2a/rest`,
  ]);
});

test.each([
  ['as they are', 'new\n', '+new'],
  ['by the command that shows them, if they are too large', 'x'.repeat(600_000), 'agent diff bd-'],
])('the changes of a run are an artifact, %s', { tags: ['slow'] }, async (_, content, shown) => {
  const write = { calls: [{ tool: 'write', arguments: { path: 'b.txt', content } }] };
  const { call, message } = await start({
    turns: [write, finish('done')],
    root: makeRepository(),
    workspace: (root, stateDir) => worktreesOf(root, join(stateDir, 'worktrees')),
  });

  const { result } = await call('SendMessage', message('Write it'));

  const { artifacts } = result.task;
  expect(artifacts.map(({ artifactId }: Loose) => artifactId)).toEqual(['results', 'patch']);
  expect(artifacts[1].parts).toEqual([
    {
      text: expect.stringContaining(shown),
      mediaType: 'text/x-diff',
      filename: `${result.task.id}.patch`,
    },
  ]);
});
