import { expect, test } from 'vitest';
import {
  bash,
  finish,
  hang,
  type Setting,
  startServer,
  untilStatus,
} from '../../support/running.ts';

/** Each test names the rule of A2A 1.0 that it holds the server to. */

const extension = 'urn:agent-task-server:a2a:task-graph:v1';
const ask = { calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };

interface WireTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: {
    readonly state: string;
    readonly timestamp: string;
    readonly message?: object;
  };
  readonly history?: readonly { readonly role: string }[];
  readonly artifacts?: readonly { readonly artifactId: string }[];
  readonly metadata: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

// biome-ignore lint/suspicious/noExplicitAny: what is expected of each answer is in its test
type Loose = any;
interface RpcAnswer {
  readonly result: Loose;
  readonly error: Loose;
}

const start = async (setting?: Setting) => {
  const server = await startServer(setting);
  const call = async (method: string, params: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.base}/a2a`, {
      method: 'POST',
      headers: { ...server.headers, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
    });
    const answer = (await response.json()) as RpcAnswer;
    return { headers: response.headers, status: response.status, ...answer };
  };
  const rest = async (verb: string, path: string, body?: object, type = 'application/a2a+json') => {
    const response = await fetch(`${server.base}/a2a/rest/${path}`, {
      method: verb,
      headers: { authorization: server.headers.authorization, 'content-type': type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      body: JSON.parse(text),
    };
  };
  const send = (text: string, more: object = {}, configuration: object = {}) =>
    call('SendMessage', {
      message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }], ...more },
      configuration,
    });
  const task = async (text: string, more: object = {}, configuration: object = {}) =>
    (await send(text, more, configuration)).result.task as WireTask;
  const now = { returnImmediately: true };
  return { server, ...server, call, rest, send, task, now };
};

const ownOf = ({ metadata }: WireTask) => metadata[extension] ?? {};
const reasonOf = (answer: { error: { data: readonly { reason?: string }[] } }) =>
  answer.error.data[0]?.reason;

test('§8 the card is open, names both bindings, and is 304 when it is known', async () => {
  const { base } = await start();
  const url = `${base}/.well-known/agent-card.json`;

  const first = await fetch(url);
  const card = (await first.json()) as Loose;
  const known = await fetch(url, { headers: { 'if-none-match': first.headers.get('etag') ?? '' } });
  const reviewer = (await (
    await fetch(`${base}/agents/reviewer/.well-known/agent-card.json`)
  ).json()) as Loose;
  const nobody = await fetch(`${base}/agents/nobody/.well-known/agent-card.json`);

  expect(first.headers.get('cache-control')).toBe('max-age=60');
  expect(known.status).toBe(304);
  expect(card).toMatchObject({
    supportedInterfaces: [
      { url: `${base}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${base}/a2a/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    ],
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    securityRequirements: [{ schemes: { token: { list: [] } } }],
    securitySchemes: {
      token: { httpAuthSecurityScheme: { scheme: expect.stringMatching(/^Bearer$/i) } },
    },
    ...{ name: expect.any(String), description: expect.any(String), version: expect.any(String) },
    defaultInputModes: expect.arrayContaining(['text/plain']),
    defaultOutputModes: expect.arrayContaining(['text/plain']),
  });
  for (const skill of card.skills)
    expect(skill).toMatchObject({ name: expect.any(String), description: expect.any(String) });
  expect(new Set(card.skills.map(({ id }: { id: string }) => id))).toEqual(
    new Set(['product-manager', 'architect', 'engineer', 'tester', 'reviewer']),
  );
  expect(card.skills.every(({ tags }: { tags: string[] }) => tags.length > 0)).toBe(true);
  expect(reviewer.supportedInterfaces[0].url).toBe(`${base}/agents/reviewer/a2a`);
  expect([reviewer.skills.length, nobody.status]).toEqual([1, 404]);
});

test('§7 every operation but the public card needs the token, on both bindings', async () => {
  const { base, call } = await start();
  const paths = [
    ...['/a2a', '/agents/tester/a2a'],
    ...['message:send', 'message:stream', 'tasks/x:cancel', 'tasks/x/pushNotificationConfigs'].map(
      (path) => `/a2a/rest/${path}`,
    ),
  ];
  const readPaths = [
    ...['tasks', 'tasks/bd-1', 'tasks/bd-1:subscribe', 'extendedAgentCard'],
    ...['tasks/bd-1/pushNotificationConfigs', 'tasks/bd-1/pushNotificationConfigs/p'],
  ];

  const answers = await Promise.all(
    paths.map((path) => fetch(`${base}${path}`, { method: 'POST', body: '{}' })),
  );
  const reads = await Promise.all(readPaths.map((path) => fetch(`${base}/a2a/rest/${path}`)));

  expect(
    [...answers, ...reads].map(({ status, headers }) => [status, headers.get('www-authenticate')]),
  ).toEqual(Array(12).fill([401, 'Bearer']));
  expect((await call('GetExtendedAgentCard', {})).result.skills[0].description).toContain('Tools:');
});

test('§3.1.11 without a token there is no extended card', async () => {
  const { call } = await start({ token: () => null });

  expect(reasonOf(await call('GetExtendedAgentCard', {}))).toBe('UNSUPPORTED_OPERATION');
});

test('§3.2.2 a send blocks until the task is over, or returns at once when asked to', async () => {
  const { task, now, call } = await start({
    turns: [{ say: 'I look.', ...bash('sleep 0.3') }, finish('done')],
  });

  const begun = await task('One', {}, now);
  const done = await task('Two');

  expect(begun.status.state).toMatch(/SUBMITTED|WORKING/);
  expect(done.status.state).toBe('TASK_STATE_COMPLETED');
  expect(done.status.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(done.artifacts?.map(({ artifactId }) => artifactId)).toEqual(['transcript', 'results']);
  expect((await call('GetTask', { id: done.id })).result).toEqual(done);
});

test('§3.4 the same messageId twice is two tasks; a context that the client chose is kept', async () => {
  const { task, call } = await start({ turns: [finish('done')] });

  const contextId = 'my, context: 1';
  const tasks = [
    await task('One', { contextId }),
    await task('Two', { contextId }),
    await task('3'),
  ];
  const listed = await call('ListTasks', { contextId });
  const own = await call('ListTasks', { contextId: tasks[2]?.contextId });

  expect(new Set(tasks.map(({ id }) => id)).size).toBe(3);
  expect(tasks.map((each) => each.contextId)).toEqual([contextId, contextId, tasks[2]?.id]);
  expect(listed.result).toMatchObject({ totalSize: 2, nextPageToken: '', pageSize: 50 });
  expect(own.result.tasks.map(({ id }: WireTask) => id)).toEqual([tasks[2]?.id]);
});

test('§3.4 a message to a task: unknown, another context, over', async () => {
  const { send, task } = await start({ turns: [finish('done')] });
  const { id } = await task('One');

  const unknown = await send('x', { taskId: 'bd-none' });
  const other = await send('x', { taskId: id, contextId: 'another' });
  const over = await send('x', { taskId: id });

  expect([unknown.error.code, reasonOf(unknown)]).toEqual([-32001, 'TASK_NOT_FOUND']);
  expect([other.error.code, other.status]).toEqual([-32602, 200]);
  expect([over.error.code, reasonOf(over)]).toEqual([-32004, 'UNSUPPORTED_OPERATION']);
});

/** The id of a question that is not among these. */
const untilAsked = async (
  call: (method: string, params: object) => Promise<RpcAnswer>,
  id: string,
  known: readonly unknown[],
): Promise<string> => {
  const read = async () => ownOf((await call('GetTask', { id })).result)['input_id'] ?? null;
  await expect.poll(async () => [null, ...known].includes(await read())).toBe(false);
  return String(await read());
};

test('§7.6 no message grants an approval, however it is worded', async () => {
  const { send, task, call, service, server } = await start({
    turns: [bash('true'), bash('true'), finish('done')],
    role: { approvals: ['bash'] },
  });
  const asked = await task('One');

  const answers = await Promise.all(
    ['yes', 'allow', '{"decision":"allow"}'].map((text) =>
      send(text, { taskId: asked.id, metadata: { [extension]: { decision: 'allow' } } }),
    ),
  );
  const after = (await call('GetTask', { id: asked.id })).result as WireTask;

  expect(asked.status.state).toBe('TASK_STATE_AUTH_REQUIRED');
  expect(JSON.stringify(asked.status.message)).toContain('bash');
  expect(answers.map(reasonOf)).toEqual(Array(3).fill('UNSUPPORTED_OPERATION'));
  expect(after.status.state).toBe('TASK_STATE_AUTH_REQUIRED');
  const inputs: unknown[] = [];
  for (const _ of ['the first call', 'the same call again']) {
    const asks = await untilAsked(call, asked.id, inputs);
    inputs.push(asks);
    const allow = { type: 'respond', inputId: asks, text: null, decision: 'allow' } as const;
    await service.respond(asked.id, 1, allow);
  }
  await untilStatus(server, asked.id, 'complete');
  expect(new Set(inputs).size).toBe(2);
});

test('§7.6 without a credential the task is there and says what is missing', async () => {
  const { task, call } = await start({ model: null });

  const refused = await task('One');
  const read = (await call('GetTask', { id: refused.id })).result as WireTask;

  expect(refused.status.state).toBe('TASK_STATE_AUTH_REQUIRED');
  expect(JSON.stringify(refused.status.message)).toContain('OPENAI_API_KEY');
  expect(read.status.state).toBe('TASK_STATE_AUTH_REQUIRED');
});

test('§3.1.5 cancel: unknown, over, twice', async () => {
  const { task, call, now, service, server } = await start({ turns: [hang] });
  const { id } = await task('One', {}, now);
  await untilStatus(server, id, 'started');

  const [unknown, first, second] = [
    await call('CancelTask', { id: 'bd-none' }),
    await call('CancelTask', { id }),
    await call('CancelTask', { id }),
  ];
  await service.retry(id, null, null, null);
  const retried = (await call('GetTask', { id: `${id}~2` })).result as WireTask;
  const old = (await call('GetTask', { id })).result as WireTask;

  expect(reasonOf(unknown)).toBe('TASK_NOT_FOUND');
  expect([first.result.status.state, second.result.status.state]).toEqual(
    Array(2).fill('TASK_STATE_CANCELED'),
  );
  expect(retried.status.state).toMatch(/SUBMITTED|WORKING/);
  expect([old.status.state, old.id]).toEqual(['TASK_STATE_CANCELED', id]);
});

test('§4 a task that is over never starts again: a retry is another task of the same context', async () => {
  const failing = { calls: [{ tool: 'finish', arguments: { status: 'failed', summary: 'no' } }] };
  const { task, call, service, server } = await start({ turns: [failing] });
  const failed = await task('One');

  await service.retry(failed.id, null, null, null);
  await untilStatus(server, failed.id, 'failed');
  const second = (await call('GetTask', { id: `${failed.id}~2` })).result as WireTask;
  const cancelled = await call('CancelTask', { id: failed.id });
  const none = await call('GetTask', { id: `${failed.id}~3` });

  expect(failed.status.state).toBe('TASK_STATE_FAILED');
  expect([second.id, second.contextId]).toEqual([`${failed.id}~2`, failed.contextId]);
  expect((await call('GetTask', { id: failed.id })).result.status.state).toBe('TASK_STATE_FAILED');
  expect([cancelled.error.code, none.error.code]).toEqual([-32002, -32001]);
});

test('§3.1.4 a list is sorted by its time, its cursor survives a change, and its filters hold', async () => {
  const { task, call, service } = await start({ turns: [finish('done')] });
  const made = [];
  for (const text of ['One', 'Two', 'Three', 'Four', 'Five']) made.push(await task(text));
  const open = await service.create({ description: 'Never run' });

  const first = (await call('ListTasks', { pageSize: 2 })).result;
  await service.edit(made[1]?.id ?? '', { title: 'Moved' });
  const second = (await call('ListTasks', { pageSize: 100, pageToken: first.nextPageToken }))
    .result;
  const done = (await call('ListTasks', { status: 'TASK_STATE_COMPLETED' })).result;
  const submitted = (await call('ListTasks', { status: 'TASK_STATE_SUBMITTED' })).result;
  const since = made[3]?.status.timestamp;
  const late = (await call('ListTasks', { statusTimestampAfter: since, includeArtifacts: true }))
    .result;

  const ids = (page: { tasks: WireTask[] }) => page.tasks.map(({ id }) => id);
  expect(ids(first)).toEqual([open.task_id, made[4]?.id]);
  expect(ids(second)).toEqual([made[3]?.id, made[2]?.id, made[0]?.id]);
  expect([first.totalSize, done.totalSize, ids(submitted)]).toEqual([6, 5, [open.task_id]]);
  expect(new Set(ids(late))).toEqual(
    new Set([open.task_id, made[4]?.id, made[3]?.id, made[1]?.id]),
  );
  expect(late.tasks.every(({ artifacts }: WireTask) => artifacts !== undefined)).toBe(true);
  expect(first.tasks.every((each: WireTask) => !('artifacts' in each))).toBe(true);
});

test('§3.1.4 a list of many tasks lets other requests come in between', async () => {
  const { call, service } = await start();
  for (let made = 0; made < 3_000; made += 500)
    await Promise.all(Array.from({ length: 500 }, () => service.create({ description: 'x' })));
  let turns = 0;
  const count = (): void => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const idle = turns;

  const { result } = await call('ListTasks', { pageSize: 1, status: 'TASK_STATE_SUBMITTED' });
  clearImmediate(counting);

  expect([result.totalSize, result.tasks.length]).toEqual([3_000, 1]);
  expect(turns - idle).toBeGreaterThan(3);
});

test.each(['TASK_STATE_UNSPECIFIED', 'UNRECOGNIZED'])(
  '§3.1.4 a list by the status %s, which clients send for none, has every task',
  async (status) => {
    const { task, call } = await start({ turns: [finish('done')] });
    await task('One');

    const listed = await call('ListTasks', { status });

    expect(listed.result).toMatchObject({ totalSize: 1 });
  },
);

test.each([
  ['GetTask', { id: 'bd-1', historyLength: -1 }, 'historyLength'],
  ['GetTask', {}, 'id'],
  ['ListTasks', { pageSize: 0 }, 'pageSize'],
  ['ListTasks', { pageSize: 101 }, 'pageSize'],
  ['ListTasks', { status: 'WORKING' }, 'status'],
  ['ListTasks', { pageToken: 'x' }, 'pageToken'],
  ['ListTasks', { statusTimestampAfter: 'yesterday' }, 'statusTimestampAfter'],
  ['SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts: [] } }, 'message.parts'],
  [
    'SendMessage',
    { message: { messageId: 'm', role: 'user', parts: [{ text: 'x' }] } },
    'message.role',
  ],
  ['SendMessage', { message: { role: 'ROLE_USER', parts: [{ text: 'x' }] } }, 'message.messageId'],
  [
    'SendMessage',
    { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x', url: 'http://x' }] } },
    'message.parts.0',
  ],
  [
    'SendMessage',
    { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ mediaType: 'text/plain' }] } },
    'message.parts.0',
  ],
  [
    'SendMessage',
    { tenant: 'nobody', message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } },
    'tenant',
  ],
  [
    'SendMessage',
    {
      message: {
        ...{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] },
        metadata: { [extension]: { dependsOn: 'bd-1' } },
      },
    },
    `message.metadata.${extension}.dependsOn`,
  ],
])('§9.5 %s names the wrong field of %j', async (method, params, field) => {
  const { call, service } = await start();

  const { error } = await call(method, params);

  expect(error.code).toBe(-32602);
  expect(error.data).toEqual([
    {
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [{ field, description: expect.any(String) }],
    },
  ]);
  expect((await service.list({})).tasks).toEqual([]);
});

test('§4.1 a part of another media type is refused, and nothing is created', async () => {
  const { call, service } = await start();
  const parts = [{ raw: 'AAAA', mediaType: 'image/png' }];

  const answer = await call('SendMessage', {
    message: { messageId: 'm', role: 'ROLE_USER', parts },
  });

  expect([answer.error.code, reasonOf(answer)]).toEqual([-32005, 'CONTENT_TYPE_NOT_SUPPORTED']);
  expect((await service.list({})).tasks).toEqual([]);
});

test('§3.6 a version that is not served is refused; a patch number makes no difference', async () => {
  const { call, rest } = await start();

  const versions = ['1.0', '1.0.1', '', '0.3', '2.0', 'x'];
  const answers = await Promise.all(
    versions.map((version) => call('ListTasks', {}, { 'a2a-version': version })),
  );

  expect(answers.map(({ error }) => error?.code ?? 'ok')).toEqual([
    ...['ok', 'ok', 'ok', -32009, -32009, -32009],
  ]);
  expect((await rest('GET', 'tasks?A2A-Version=2.0')).body.error.status).toBe(
    'FAILED_PRECONDITION',
  );
});

test('§4.6 the extension that a client asks for is named in the answer, others are not', async () => {
  const { call } = await start();

  const { headers } = await call('ListTasks', {}, { 'a2a-extensions': `x://y, ${extension}` });

  expect(headers.get('a2a-extensions')).toBe(extension);
});

test('§11 REST: paths, tenants, query, media types and errors', async () => {
  const { rest, task, base, headers } = await start({ turns: [finish('done')] });
  const { id } = await task('One');
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Two' }] };

  const sent = await rest('POST', 'tester/message:send', { message });
  const read = await rest('GET', `tasks/${id}?historyLength=0`);
  const bad = await rest('GET', `tasks/${id}?historyLength=x`);
  const page = await rest('GET', 'tasks?pageSize=1&includeArtifacts=true');
  const unknown = await rest('GET', 'nothing');
  const verb = await rest('DELETE', 'tasks');
  const none = await rest('GET', 'tasks/bd-none');
  const text = await rest('POST', 'message:send', { message }, 'text/plain');
  const json = await rest('POST', `tasks/${id}:cancel`, {}, 'application/json');
  const stream = await fetch(`${base}/a2a/rest/tasks/${id}:subscribe`, { headers });

  expect(sent.type).toBe('application/a2a+json; charset=utf-8');
  expect(ownOf(sent.body.task)['role']).toBe('tester');
  expect([read.body.id, 'history' in read.body]).toEqual([id, false]);
  expect([bad.status, bad.body.error.status]).toEqual([400, 'INVALID_ARGUMENT']);
  expect([page.body.tasks.length, page.body.totalSize]).toEqual([1, 2]);
  expect([unknown, none].map(({ status, body }) => [status, body.error.status])).toEqual(
    Array(2).fill([404, 'NOT_FOUND']),
  );
  expect(verb.status).toBe(405);
  expect([text.status, text.body.error.details[0].reason]).toEqual([
    400,
    'CONTENT_TYPE_NOT_SUPPORTED',
  ]);
  expect(json.body.error.details[0].reason).toBe('TASK_NOT_CANCELABLE');
  expect([stream.status, stream.headers.get('content-type'), await stream.json()]).toMatchObject([
    ...[400, 'application/a2a+json; charset=utf-8'],
    { error: { details: [{ reason: 'UNSUPPORTED_OPERATION' }] } },
  ]);
});

test('§9.4 a stream in a batch is refused, its other calls are answered; a refused stream is plain JSON', async () => {
  const { base, headers, call } = await start();
  const calls = [
    { jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: 'bd-1' } },
    { jsonrpc: '2.0', id: 2, method: 'ListTasks', params: {} },
    { jsonrpc: '2.0', id: 3, method: 'list' },
    { jsonrpc: '2.0', method: 'ListTasks' },
  ];

  const batch = await fetch(`${base}/a2a`, {
    method: 'POST',
    headers,
    body: JSON.stringify(calls),
  });
  const answers = (await batch.json()) as readonly { id: number; error?: { code: number } }[];
  const refused = await call('SubscribeToTask', { id: 'bd-none' });

  expect(answers.map(({ id, error }) => [id, error?.code ?? 'ok'])).toEqual([
    [1, -32600],
    [2, 'ok'],
    [3, 'ok'],
  ]);
  expect([refused.error.code, refused.headers.get('content-type')]).toEqual([
    ...[-32001, 'application/json; charset=utf-8'],
  ]);
});

test('our methods and those of A2A are answered at the same addresses', async () => {
  const { post } = await start();

  for (const path of ['/a2a', '/a2a/execute', '/a2a/status', '/agents/tester/a2a'])
    for (const method of ['list', 'ListTasks'])
      expect((await post({ jsonrpc: '2.0', id: 1, method, params: {} }, path)).body).toMatchObject({
        result: { tasks: [] },
      });
});

test('the same message to a task under the same key is carried out once', async () => {
  const { call, task, now, service } = await start({ turns: [ask, ask, finish('done')] });
  const first = await task('One');
  const own = { metadata: { [extension]: { dependsOn: [first.id] } } };
  const second = await task('Two', own, now);
  const say = (text: string, taskId: string, key: string) => {
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text }], taskId };
    return call('SendMessage', { message, configuration: now }, { 'idempotency-key': key });
  };

  const added = [
    await say('And three', second.id, 'k-1'),
    ...(await Promise.all([
      say('And three', second.id, 'k-1'),
      say('And three', second.id, 'k-1'),
    ])),
  ];
  await say('And three', second.id, 'k-2');
  const { description } = await service.status(second.id);
  const { task_id, attempt, awaiting } = await service.status(first.id.split('.')[0] ?? '');
  await say('80', first.id, 'k-3');
  await expect
    .poll(async () => (await service.status(task_id)).awaiting?.input_id, { timeout: 20_000 })
    .not.toBe(awaiting?.input_id);
  await expect
    .poll(async () => (await service.status(task_id)).phase, { timeout: 20_000 })
    .toBe('awaiting_input');
  await say('80', first.id, 'k-3');

  expect(added.map(({ result }) => result.task.id)).toEqual(Array(3).fill(second.id));
  expect(description).toBe('Two\n\nAnd three\n\nAnd three');
  expect(await service.status(task_id)).toMatchObject({ attempt, phase: 'awaiting_input' });
});

test('dependsOn makes a task wait; a message while it waits adds to what is to be done', async () => {
  const { task, send, call, now, service, server } = await start({ turns: [ask, finish('done')] });
  const first = await task('One');
  const own = { metadata: { [extension]: { dependsOn: [first.id] } } };

  const second = await task('Two', own, now);
  const added = await send('And three', { taskId: second.id }, now);
  await send('80', { taskId: first.id });
  const unknown = await send('x', { metadata: { [extension]: { dependsOn: ['bd-none'] } } });

  expect(second.status.state).toBe('TASK_STATE_SUBMITTED');
  expect(ownOf(second)['unmet_dependencies']).toEqual([first.id]);
  expect(added.result.task.status.state).toBe('TASK_STATE_SUBMITTED');
  expect((await service.status(second.id)).description).toBe('Two\n\nAnd three');
  expect(unknown.error.code).toBe(-32602);
  await untilStatus(server, second.id, 'started');
  expect((await call('GetTask', { id: second.id })).result.history[0].parts).toEqual([
    { text: 'Two\n\nAnd three' },
  ]);
});
