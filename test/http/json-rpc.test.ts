import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StoreAwayError } from '../../src/actors/store/port.ts';
import { createMethods } from '../../src/http/methods.ts';
import { somebodyElse } from '../support/ledger.ts';
import { finish, startServer } from '../support/running.ts';

const servedMethods = Object.keys(createMethods({} as never, () => null, {} as never, {} as never));

const rpc = (method: string, params?: unknown, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

test('a task is created, listed, run and shown by JSON-RPC', async () => {
  const { call } = await startServer({ turns: [finish('all good')] });

  const { result: task } = await call('create', {
    description: 'Do it\nwith care',
    priority: 1,
    labels: ['x'],
  });
  const { result: page } = await call('list', { status: 'queued' });
  const { result: execution } = await call('execute', { task_id: task.task_id, role: 'engineer' });

  expect(task).toMatchObject({
    title: 'Do it',
    description: 'Do it\nwith care',
    status: 'queued',
    ready: true,
    priority: 1,
  });
  expect(page.tasks.map((each: { task_id: string }) => each.task_id)).toEqual([task.task_id]);
  expect(Object.keys(execution).sort()).toEqual(
    ['attempt', 'created_at', 'message', 'phase', 'role', 'status', 'stream_url', 'task_id'].sort(),
  );
  expect(execution).toMatchObject({ task_id: task.task_id, role: 'engineer', attempt: 1 });
});

test.each(['/a2a/execute', '/a2a/status', '/a2a/discovery'])(
  '%s answers every method, also with the prefix a2a.',
  async (path) => {
    const { post } = await startServer();

    const plain = await post(rpc('discovery'), path);
    const prefixed = await post(rpc('a2a.list', {}), path);

    expect(plain.body.result.capabilities).toMatchObject({
      streaming: true,
      parallel: true,
      max_concurrent: 3,
    });
    expect(prefixed.body.result).toEqual({ tasks: [] });
  },
);

test.each([
  [
    'an unknown id',
    'status',
    { task_id: 'bd-none' },
    -32001,
    'task_not_found',
    'task bd-none does not exist',
  ],
  ['a path', 'status', { task_id: '../x' }, -32001, 'task_not_found', 'task ../x does not exist'],
  [
    'a flag',
    'execute',
    { task_id: '-x', role: 'engineer' },
    -32001,
    'task_not_found',
    'task -x does not exist',
  ],
  [
    '200 characters',
    'status',
    { task_id: 'a'.repeat(200) },
    -32001,
    'task_not_found',
    `task ${'a'.repeat(100)}… does not exist`,
  ],
  ['an empty id', 'status', { task_id: '' }, -32602, 'invalid_params', 'task_id: is empty'],
  ['a number for an id', 'status', { task_id: 7 }, -32602, 'invalid_params', 'task_id: '],
  ['no id', 'execute', { role: 'engineer' }, -32602, 'invalid_params', 'task_id: give either'],
  [
    'an unknown role',
    'execute',
    { task_id: 'bd-1', role: 'janitor' },
    -32014,
    'role_unknown',
    'unknown role "janitor"; the roles are engineer, tester',
  ],
  [
    'an unknown option',
    'execute',
    { task_id: 'bd-1', role: 'engineer', options: { speed: 1 } },
    -32602,
    'invalid_params',
    'options.speed: is not known here',
  ],
  [
    'unknown parameters',
    'status',
    { task_id: 'bd-1', foo: 1, bar: 2 },
    -32602,
    'invalid_params',
    'foo: is not known here; bar: is not known here',
  ],
  ['params by position', 'status', ['bd-1'], -32602, 'invalid_params', 'params: '],
  [
    'an unknown dependency',
    'create',
    { description: 'x', dependencies: ['bd-none'] },
    -32001,
    'task_not_found',
    'task bd-none does not exist',
  ],
  [
    'an empty description',
    'create',
    { description: ' ' },
    -32602,
    'invalid_params',
    'description: is empty',
  ],
  ['an unknown cursor', 'list', { cursor: 'bd-none' }, -32602, 'invalid_params', 'cursor: '],
])(
  '%s is refused by name, and nothing is written',
  async (_, method, params, code, name, message) => {
    const { call, tracker, store } = await startServer();

    const { error } = await call(method, params);

    expect(error).toMatchObject({ code, data: { code: name } });
    expect(error.message.slice(0, message.length)).toBe(message);
    expect(await tracker.list()).toEqual([]);
    expect(store.read({ after: 0, limit: 10 }).filter(({ cause }) => cause !== null)).toEqual([]);
  },
);

test('a run of a task with an unmet dependency is refused with the ids', async () => {
  const { call } = await startServer();
  const { result: first } = await call('create', { description: 'first' });
  const { result: second } = await call('create', {
    description: 'second',
    dependencies: [first.task_id],
  });

  const { error } = await call('execute', { task_id: second.task_id, role: 'tester' });

  expect(error).toEqual({
    code: -32010,
    message: `task has unmet dependencies [${first.task_id}]`,
    data: { code: 'dependencies_unmet', task_id: second.task_id, unmet: [first.task_id] },
  });
  expect((await call('status', { task_id: second.task_id })).result).toMatchObject({
    status: 'queued',
    phase: 'waiting_for_dependencies',
    ready: false,
    attempt: 0,
  });
});

test('free text becomes a task first', async () => {
  const { call } = await startServer({ turns: [finish()] });

  const { result } = await call('execute', { task: 'Fix the login-bug today', role: 'engineer' });

  expect((await call('status', { task_id: result.task_id })).result.title).toBe(
    'Fix the login-bug today',
  );
});

test.each([
  ['text that is not JSON', '{"jsonrpc"', 400, -32700, 'parse_error'],
  ['an empty body', '', 400, -32700, 'parse_error'],
  ['a number', '7', 400, -32600, 'invalid_request'],
  ['null', 'null', 400, -32600, 'invalid_request'],
  ['another version', '{"jsonrpc":"1.0","id":1,"method":"list"}', 400, -32600, 'invalid_request'],
  [
    'a method that is no string',
    '{"jsonrpc":"2.0","id":1,"method":7}',
    400,
    -32600,
    'invalid_request',
  ],
  [
    'params that are text',
    '{"jsonrpc":"2.0","id":1,"method":"list","params":"x"}',
    400,
    -32600,
    'invalid_request',
  ],
  ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"fly"}', 200, -32601, 'method_not_found'],
  [
    '65 levels',
    `{"jsonrpc":"2.0","id":1,"method":"list","params":{"a":${'['.repeat(64)}${']'.repeat(64)}}}`,
    400,
    -32600,
    'invalid_request',
  ],
  ['400,000 levels', '['.repeat(400_000), 400, -32600, 'invalid_request'],
  ['an empty batch', '[]', 400, -32600, 'invalid_request'],
  [
    '21 requests',
    JSON.stringify(Array.from({ length: 21 }, () => rpc('list'))),
    400,
    -32600,
    'invalid_request',
  ],
])('%s gets the answer that JSON-RPC specifies', async (_, body, status, code, name) => {
  const { post } = await startServer();

  const answer = await post(body);

  expect(answer).toMatchObject({
    status,
    body: { jsonrpc: '2.0', error: { code, data: { code: name } } },
  });
});

test('any body gets an answer, never an internal error, and the server keeps running', {
  tags: ['slow'],
}, async () => {
  const { post, base } = await startServer();
  const method = fc.constantFrom(
    ...servedMethods.filter((name) => name !== 'discovery'),
    'constructor',
    '__proto__',
  );
  const key = fc.constantFrom(
    'task_id',
    'task',
    'role',
    'description',
    'options',
    'limit',
    'attempt',
    '__proto__',
  );
  const params = fc.oneof(fc.jsonValue(), fc.dictionary(key, fc.jsonValue(), { maxKeys: 4 }));
  const body = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.jsonValue().map((value) => JSON.stringify(value)),
    fc.tuple(method, params).map(([name, given]) => JSON.stringify(rpc(name, given))),
  );

  await fc.assert(
    fc.asyncProperty(body, async (text) => {
      const answer = await post(text);
      expect([200, 204, 400]).toContain(answer.status);
      for (const { error } of [answer.body ?? {}].flat()) expect(error?.code).not.toBe(-32603);
    }),
    { numRuns: 300 },
  );

  expect((await fetch(`${base}/health`)).status).toBe(200);
});

test('a notification is executed and gets no answer', async () => {
  const { post, tracker } = await startServer();

  const answer = await post({
    jsonrpc: '2.0',
    method: 'create',
    params: { description: 'quietly' },
  });

  expect(answer).toEqual({ status: 204, body: null });
  expect(await tracker.list()).toHaveLength(1);
});

test('a batch gets an answer per call, a batch of one gets an array, and broken calls get named errors', async () => {
  const { post } = await startServer();

  const one = await post([rpc('list', {}, 'a')]);
  const mixed = await post([
    rpc('list', {}, 1),
    null,
    rpc('fly', {}, 2),
    { jsonrpc: '2.0', method: 'list' },
  ]);

  expect(one.body).toEqual([{ jsonrpc: '2.0', id: 'a', result: { tasks: [] } }]);
  expect(
    mixed.body.map((each: { id: unknown; error?: { code: number } }) => [
      each.id,
      each.error?.code,
    ]),
  ).toEqual([
    [1, undefined],
    [null, -32600],
    [2, -32601],
  ]);
});

test('a repeated request id gets the first answer and starts nothing', async () => {
  const { call, store } = await startServer({ turns: [finish()] });
  const { result: task } = await call('create', { description: 'once' });
  const params = { task_id: task.task_id, role: 'engineer', request_id: 'r-1' };

  const answers = await Promise.all(Array.from({ length: 10 }, () => call('execute', params)));
  const later = await call('execute', params);
  const nul = await call('execute', { ...params, request_id: 'r\u00001' });

  expect(nul.error).toMatchObject({ code: -32602, message: expect.stringContaining('NUL') });
  for (const answer of [...answers, later]) expect(answer.result).toEqual(answers[0].result);
  const begun = store
    .read({ after: 0, limit: 1_000 })
    .filter(({ cause }) => cause?.includes('"type":"run"'));
  expect(begun).toHaveLength(1);
});

test('a task with another holder is not cancelled', async () => {
  const { call, root, ledger } = await startServer({ turns: [finish()] });
  const { result: task } = await call('create', { description: 'theirs' });
  const amy = somebodyElse(root, 'amy', ledger);
  await amy.claim(task.task_id);

  const { error } = await call('cancel', { task_id: task.task_id });

  expect(error).toMatchObject({ code: -32018, data: { code: 'tracker_conflict', holder: 'amy' } });
  expect((await call('status', { task_id: task.task_id })).result.status).toBe('started');
});

test('a new task cannot have a label that marks the end of an attempt', async () => {
  const { call } = await startServer();

  const { error } = await call('create', { description: 'new', labels: ['ours', 'agent-failed'] });

  expect(error).toMatchObject({ code: -32602, data: { fields: [{ path: 'labels' }] } });
  expect((await call('list', {})).result.tasks).toEqual([]);
});

test('a repeated free-text request after a refusal finds its task', async () => {
  const { call, system } = await startServer({ turns: [finish()], options: { queueLimit: 0 } });
  const params = { task: 'Do it once', role: 'engineer', request_id: 'r-2' };

  const refused = [await call('execute', params), await call('execute', params)];
  system.reconfigure({ ...system.settings(), queueLimit: 10 });
  const { result } = await call('execute', params);

  const { tasks } = (await call('list', {})).result;
  expect(refused.map(({ error }) => error.data.code)).toEqual(['queue_full', 'queue_full']);
  expect(tasks.map(({ task_id }: { task_id: string }) => task_id)).toEqual([result.task_id]);
  expect(refused.map(({ error }) => error.data.task_id)).toEqual([result.task_id, result.task_id]);
});

test('a full queue is an error with status 200 and a time to retry', async () => {
  const { base, headers } = await startServer({ options: { queueLimit: 0 } });
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'execute',
    params: { task: 'Do it', role: 'engineer' },
  };
  const ask = (body: object) =>
    fetch(`${base}/a2a/execute`, { method: 'POST', headers, body: JSON.stringify(body) });

  for (const response of [await ask(call), await ask([call])]) {
    const [{ error }] = [await response.json()].flat() as [{ error: unknown }];
    expect([response.status, response.headers.get('retry-after')]).toEqual([200, '10']);
    expect(error).toMatchObject({
      code: -32015,
      data: { code: 'queue_full', limit: 0, retry_after_seconds: 10 },
    });
  }
});

test('an internal error shows no details', async () => {
  const { call, tracker, logged } = await startServer();
  tracker.page = () => Promise.reject(new Error('secret detail'));

  const { error } = await call('list', {});

  expect(error).toEqual({
    code: -32603,
    message: 'internal error; the server log has the details',
    data: { code: 'internal' },
  });
  expect(JSON.stringify(logged.map(({ facts }) => String(facts['error'])))).toContain(
    'secret detail',
  );
});

test('a store that is away is named, so that the caller can ask again', async () => {
  const { call, tracker } = await startServer();
  tracker.page = () => Promise.reject(new StoreAwayError('the database x does not answer'));

  const { error } = await call('list', {});

  expect(error.message).toContain('the database x does not answer');
});

test('explain evaluates the guards on present facts, and changes nothing', async () => {
  const { call, store } = await startServer({ turns: [finish()] });
  const { result: first } = await call('create', { description: 'first' });
  const { result: second } = await call('create', {
    description: 'second',
    dependencies: [first.task_id],
  });

  const { result } = await call('explain', { task_id: second.task_id });

  expect(result).toEqual({
    task_id: second.task_id,
    state: { queued: 'idle' },
    guards: [
      { guard: 'taskExists', value: true, inputs: { exists: true } },
      { guard: 'dependenciesComplete', value: false, inputs: { unmet: [first.task_id] } },
      { guard: 'heldByNobodyElse', value: true, inputs: { holder: null } },
      { guard: 'projectCanBeUsed', value: true, inputs: {} },
      { guard: 'modelCanBeCalled', value: true, inputs: { missing_credential: null } },
      { guard: 'withinBudget', value: true, inputs: {} },
      { guard: 'hasAttemptsLeft', value: false, inputs: { retries_left: 0, retryable: null } },
      { guard: 'queueHasRoom', value: true, inputs: { waiting: 0, limit: 100 } },
      {
        guard: 'slotIsFree',
        value: true,
        inputs: { running: 0, waiting: 0, cap: 3, paused: null },
      },
    ],
    allowed_events: ['cancel'],
    reason: `it waits for ${first.task_id} (queued)`,
    deadline: null,
    request_reason: null,
    conflicts: [],
  });
  expect(store.lastSeq()).toBe(0);
  await call('execute', { task_id: second.task_id, role: 'engineer' });
  expect((await call('explain', { task_id: second.task_id })).result.reason).toBe(
    `task has unmet dependencies [${first.task_id}]; now: ${first.task_id} (queued)`,
  );
});

test('explain names the allowed commands of a task that was closed and opened in the tracker', async () => {
  const { call, root, ledger } = await startServer({ turns: [finish()] });
  const { result: task } = await call('create', { description: 'by hand' });
  const amy = somebodyElse(root, 'amy', ledger);
  const allowed = async () =>
    (await call('explain', { task_id: task.task_id })).result.allowed_events;

  await amy.close(task.task_id, 'done by amy');
  const closed = await allowed();
  await amy.reopen(task.task_id);
  const opened = await allowed();

  expect(closed).toEqual(['reopen']);
  expect(opened).toEqual(['run', 'close', 'cancel']);
});

test('dependencies are added and removed, a cycle is refused by name', async () => {
  const { call } = await startServer();
  const { result: one } = await call('create', { description: 'one' });
  const { result: two } = await call('create', { description: 'two' });
  const edge = { task_id: two.task_id, depends_on: one.task_id };

  const added = await call('add_dependency', edge);
  const cycle = await call('add_dependency', { task_id: one.task_id, depends_on: two.task_id });
  const removed = await call('remove_dependency', edge);

  expect(added.result).toMatchObject({
    dependencies: [one.task_id],
    ready: false,
    phase: 'waiting_for_dependencies',
  });
  expect(cycle.error).toMatchObject({
    code: -32011,
    data: { code: 'dependency_cycle', cycle: [one.task_id, two.task_id, one.task_id] },
  });
  expect(removed.result).toMatchObject({ dependencies: [], ready: true });
});

test('the answer to an unknown method lists the methods', async () => {
  const { call } = await startServer();

  const { error } = await call('no-such-method', {});

  expect(error.message).toBe(
    `unknown method no-such-method; the methods are ${servedMethods.join(', ')}`,
  );
});

test('a request that is none of JSON-RPC is told so in our words', async () => {
  const { post } = await startServer();

  const { body } = await post({ jsonrpc: '1.0', id: {}, method: 7, params: 'x', more: 1 });

  expect(body.error.message).toBe(
    'not a JSON-RPC 2.0 request: jsonrpc: expected 2.0, got text of 3 characters; method: expected text of at least 1 character, got 7; params: expected an object or an array; id: expected text, a number or null; more: is not known here',
  );
});
