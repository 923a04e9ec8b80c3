import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  bash,
  finish,
  hang,
  type Setting,
  startServer,
  untilStatus,
} from '../../support/running.ts';

/** Rules of A2A 1.0 that rules.test.ts does not have, by their sections. */

const extension = 'urn:agent-task-server:a2a:task-graph:v1';
const ask = { calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };
// biome-ignore lint/suspicious/noExplicitAny: what is expected of each answer is in its test
type Loose = any;

const start = async (setting?: Setting) => {
  const server = await startServer(setting);
  const send = async (message: object = {}, configuration: object = {}): Promise<Loose> =>
    server.call('SendMessage', {
      message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Do it' }], ...message },
      configuration,
    });
  const rest = async (verb: string, path: string, body?: string): Promise<Loose> => {
    const response = await fetch(`${server.base}/a2a/rest/${path}`, {
      method: verb,
      headers: server.headers,
      ...(body === undefined ? {} : { body }),
    });
    return {
      status: response.status,
      type: response.headers.get('content-type'),
      allow: response.headers.get('allow'),
      body: await response.json(),
    };
  };
  return { server, ...server, send, rest };
};

/** Events of a subscription, read one by one. */
const subscribed = async ({ base, headers }: { base: string; headers: object }, id: string) => {
  const gone = new AbortController();
  const response = await fetch(`${base}/a2a/rest/tasks/${id}:subscribe`, {
    headers: headers as Record<string, string>,
    signal: gone.signal,
  });
  const pieces = (response.body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let rest = '';
  const next = async (): Promise<Loose> => {
    for (;;) {
      const end = rest.indexOf('\n\n');
      if (end >= 0) {
        const frame = rest.slice(0, end);
        rest = rest.slice(end + 2);
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        if (data !== undefined) return JSON.parse(data);
        continue;
      }
      const { value, done } = await pieces.read();
      if (done) return null;
      rest += value;
    }
  };
  const until = async (state: string): Promise<void> => {
    for (;;) {
      const event = await next();
      expect(event, `the stream ended before ${state}`).not.toBeNull();
      const status = event.task?.status ?? event.statusUpdate?.status;
      if (status?.state === `TASK_STATE_${state}`) return;
    }
  };
  return { next, until, cut: () => gone.abort() };
};

test('§5.7 an unknown dependency is a wrong field, and nothing is created', async () => {
  const { send, service } = await start();

  const { error } = await send({ metadata: { [extension]: { dependsOn: ['bd-none'] } } });

  expect(error.code).toBe(-32602);
  expect(error.data[0].fieldViolations[0].field).toBe(`message.metadata.${extension}.dependsOn`);
  expect((await service.list({})).tasks).toEqual([]);
});

test('§3.4.1 the longest context that is taken comes back as it is; a longer one is refused', async () => {
  const { send, call } = await start({ turns: [finish()] });
  const contextId = '~,'.repeat(64);

  const { result } = await send({ contextId });
  const listed = await call('ListTasks', { contextId });
  const longer = await send({ contextId: `${contextId}x` });

  expect(result.task.contextId).toBe(contextId);
  expect(listed.result.totalSize).toBe(1);
  expect(longer.error.code).toBe(-32602);
});

test('§3.4 a run that follows another one names it', async () => {
  const { send, call, service, server } = await start({ turns: [finish('no', 'failed')] });
  const { id } = (await send()).result.task;
  await service.retry(id, null, null, null);
  await untilStatus(server, id, 'failed');

  const first = (await call('GetTask', { id })).result;
  const second = (await call('GetTask', { id: `${id}~2` })).result;

  expect(second.history[0].referenceTaskIds).toEqual([id]);
  expect('referenceTaskIds' in first.history[0]).toBe(false);
});

test('§11.6 a verb that means nothing at an address is an error of A2A, which names the others', async () => {
  const { rest } = await start();

  const answers: Loose[] = [];
  for (const verb of ['PUT', 'PATCH', 'POST']) answers.push(await rest(verb, 'tasks', '{}'));
  const several = await rest('PUT', 'engineer/tasks/bd-1:subscribe', '{}');

  for (const { status, type, allow, body } of answers) {
    expect([status, type, allow]).toEqual([405, 'application/a2a+json; charset=utf-8', 'GET']);
    expect(body.error).toMatchObject({ code: 405, status: 'UNIMPLEMENTED' });
  }
  expect([several.status, several.allow]).toEqual([405, 'GET, POST']);
});

test('§9.5 an unknown method names those of A2A where A2A is spoken, and ours elsewhere', async () => {
  const { post, rest } = await start({ a2a: { versions: ['1.0', '0.3'] } });
  const request = { jsonrpc: '2.0', id: 7, method: 'Sendmessage', params: {} };

  const atA2a = (await post(request, '/a2a')).body;
  const ofRole = (await post([request], '/agents/tester/a2a')).body[0];
  const ours = (await post(request, '/a2a/execute')).body;
  const noRole = await post(request, '/agents/nobody/a2a');
  const noRoleRest = await rest('GET', '../../agents/nobody/a2a/rest/tasks');

  for (const { id, error } of [atA2a, ofRole]) {
    expect([id, error.code]).toEqual([7, -32601]);
    expect(error.message).toMatch(
      /^unknown method Sendmessage; the methods are SendMessage, GetTask/,
    );
    expect(error.message).toContain('message/send');
    expect(error.message).not.toContain('execute');
  }
  expect(ours.error.message).toContain('execute');
  for (const { status, body } of [noRole, noRoleRest]) {
    expect(status).toBe(404);
    expect(body.error.message).toMatch(/^unknown role "nobody"; the roles are engineer, tester/);
  }
});

test.each([
  [
    'ListTasks',
    { status: 'nope' },
    'status: expected one of TASK_STATE_SUBMITTED, TASK_STATE_WORKING',
  ],
  [
    'ListTasks',
    { statusTimestampAfter: 'noon' },
    'statusTimestampAfter: expected a time like 2026',
  ],
  [
    'CreateTaskPushNotificationConfig',
    { taskId: 'bd-1', url: 'ftp://x' },
    'url: expected an http or https address',
  ],
  [
    'SendMessage',
    {
      message: {
        messageId: 'm',
        role: 'ROLE_USER',
        parts: [{ raw: '%', mediaType: 'text/plain' }],
      },
    },
    'message.parts.0.raw: expected bytes in base64',
  ],
])('§5.5 a wrong value of %s says what is expected', async (method, params, words) => {
  const { call } = await start();

  const { error } = await call(method, params);

  expect(error.code).toBe(-32602);
  expect(error.message.slice(0, words.length)).toBe(words);
});

test('§3.2 an unknown role is named, with where it was said', async () => {
  const { call } = await start();
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] };
  const said = async (params: object): Promise<string> =>
    (await call('SendMessage', params)).error.message;

  const messages = [
    await said({ message, tenant: 'pilot' }),
    await said({ message: { ...message, metadata: { skillId: 'pilot' } } }),
    await said({ message: { ...message, metadata: { [extension]: { role: 'pilot' } } } }),
  ];

  expect(messages.map((each) => each.split('; ')[0])).toEqual([
    'tenant: unknown role "pilot"',
    'message.metadata.skillId: unknown role "pilot"',
    `message.metadata.${extension}.role: unknown role "pilot"`,
  ]);
});

test('§3.2 a tenant that is no role is refused by every operation', async () => {
  const { call, rest } = await start();
  const names = ['GetTask', 'ListTasks', 'CancelTask', 'ListTaskPushNotificationConfigs'];

  const answers = await Promise.all(
    names.map((name) => call(name, { tenant: 'pilot', id: 'bd-1', taskId: 'bd-1' })),
  );
  const read = await rest('GET', 'pilot/tasks');
  const own = await rest('GET', 'tester/tasks');

  for (const { error } of answers) expect(error.message).toContain('tenant: unknown role "pilot"');
  expect([read.status, read.body.error.message]).toEqual([
    400,
    expect.stringContaining('tenant: unknown role "pilot"'),
  ]);
  expect([own.status, own.body.tasks]).toEqual([200, []]);
});

test.each(['x', '', '1e2', '0x10'])(
  '§5.5 the number %j in a query is refused as it was given',
  async (given) => {
    const { rest } = await start();

    const { status, body } = await rest('GET', `tasks?pageSize=${given}`);

    expect(status).toBe(400);
    expect(body.error.message).toBe(
      `pageSize: expected a whole number from 1 to 100, got ${given === '' ? 'empty text' : JSON.stringify(given)}`,
    );
  },
);

test('§3.6 the paths of 0.3 are of a version that is not served, not of a tenant', async () => {
  const { rest } = await start();

  const answers = [await rest('GET', 'v1/tasks'), await rest('POST', 'v1/message:send', '{}')];
  const tenant = await rest('GET', 'tester/tasks');

  expect(answers.map(({ body }) => body.error.details[0].reason)).toEqual(
    Array(2).fill('VERSION_NOT_SUPPORTED'),
  );
  expect([tenant.status, tenant.body.tasks]).toEqual([200, []]);
});

test.each([
  ['AUTH_REQUIRED', bash('true'), { text: null, decision: 'allow' }],
  ['INPUT_REQUIRED', ask, { text: '8080', decision: null }],
] as const)(
  '§3.1.6 a subscription stays open while a person is asked, and ends with the task: %s',
  async (state, turn, answer) => {
    const { send, server, service } = await start({
      turns: [turn, finish('all good')],
      role: { approvals: ['bash'] },
    });
    const { id, metadata } = (await send()).result.task;
    const stream = await subscribed(server, id);

    const first = await stream.next();
    const inputId = metadata[extension].input_id;
    await service.respond(id, 1, { type: 'respond', inputId, ...answer });
    await stream.until('COMPLETED');

    expect(first.task.status.state).toBe(`TASK_STATE_${state}`);
    expect(await stream.next()).toBeNull();
  },
);

test('§3.5.2 a reader that is cut off changes nothing for the task or for others', async () => {
  const { send, server, service } = await start({ turns: [hang] });
  const { id } = (await send({}, { returnImmediately: true })).result.task;
  await untilStatus(server, id, 'started');
  const [one, other] = [await subscribed(server, id), await subscribed(server, id)];
  await one.next();
  await other.next();

  one.cut();
  const again = await subscribed(server, id);
  await again.until('WORKING');
  await service.cancel(id, 'enough');
  await other.until('CANCELED');

  await again.until('CANCELED');

  expect([await other.next(), await again.next()]).toEqual([null, null]);
});

test('§3.1.6 a task that was made elsewhere, and never ran, can be followed', async () => {
  const { server, service } = await start({ turns: [finish()] });
  const { task_id } = await service.create({ description: 'From the command line' });
  const stream = await subscribed(server, task_id);

  const first = await stream.next();
  await service.execute({ task: task_id, role: 'engineer', options: {} });
  await stream.until('COMPLETED');

  expect(first.task.status.state).toBe('TASK_STATE_SUBMITTED');
});

test('§5.1 both bindings answer the same', async () => {
  const { send, call, rest } = await start({ turns: [finish()] });
  const { id } = (await send()).result.task;

  const pairs = [
    [await call('GetTask', { id }), await rest('GET', `tasks/${id}`)],
    [await call('ListTasks', {}), await rest('GET', 'tasks')],
    [await call('GetExtendedAgentCard', {}), await rest('GET', 'extendedAgentCard')],
    [
      await call('ListTaskPushNotificationConfigs', { taskId: id }),
      await rest('GET', `tasks/${id}/pushNotificationConfigs`),
    ],
  ] as const;
  const refusals = [
    [await call('GetTask', { id: 'bd-none' }), await rest('GET', 'tasks/bd-none')],
    [await call('CancelTask', { id }), await rest('POST', `tasks/${id}:cancel`)],
    [await call('SendMessage', {}), await rest('POST', 'message:send')],
  ] as const;

  for (const [rpc, { body }] of pairs) expect(rpc.result).toEqual(body);
  for (const [rpc, { body }] of refusals) {
    expect(body.error.message).toBe(rpc.error.message);
    expect(body.error.details).toEqual(rpc.error.data);
  }
});

test('§3.1.4 the members of a list that are empty are there', async () => {
  const { call } = await start();

  expect((await call('ListTasks', {})).result).toEqual({
    ...{ tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 },
  });
});

test('§3.2.4 the history: none, the latest, all', async () => {
  const { send, call } = await start({ turns: [ask, finish()] });
  const { id } = (await send()).result.task;
  await send({ taskId: id, parts: [{ text: '8080' }] });
  const textsOf = async (params: object) =>
    (await call('GetTask', { id, ...params })).result.history?.map(
      ({ parts }: Loose) => parts[0].text,
    );

  expect(await textsOf({ historyLength: 0 })).toBeUndefined();
  expect(await textsOf({ historyLength: 1 })).toEqual(['8080']);
  expect(await textsOf({ historyLength: 2 })).toEqual(['Which port?', '8080']);
  for (const all of [{}, { historyLength: 99 }])
    expect(await textsOf(all)).toEqual(['Do it', 'Which port?', '8080']);
  const { tasks } = (await call('ListTasks', { historyLength: 1 })).result;
  expect(tasks[0].history.map(({ parts }: Loose) => parts[0].text)).toEqual(['8080']);
  expect((await send({}, { historyLength: 0 })).result.task).not.toHaveProperty('history');
});

test('§13 an address in a part is data: nobody asks it', async () => {
  const { send, call, server } = await start({ turns: [finish()] });
  const asked: string[] = [];
  const there = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('fetched');
  }).listen(0, '127.0.0.1');
  await once(there, 'listening');
  onTestFinished(() => void there.close());
  const url = `http://127.0.0.1:${(there.address() as AddressInfo).port}/secret.txt`;

  const { result } = await send({ parts: [{ text: 'Read it' }, { url, mediaType: 'text/plain' }] });

  expect(result.task.status.state).toBe('TASK_STATE_COMPLETED');
  const { history } = (await call('GetTask', { id: result.task.id })).result;
  expect(JSON.stringify(history)).toContain(url);
  expect((await server.service.status(result.task.id)).description).not.toContain('fetched');
  expect(asked).toEqual([]);
});
