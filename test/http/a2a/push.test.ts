import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createPushConfigs } from '../../../src/actors/store/rows/push-configs.ts';
import { createPushDelivery } from '../../../src/http/a2a/push-delivery.ts';
import { readRunAt } from '../../../src/http/a2a/read-run.ts';
import { bash, finish, hang, type Setting, startServer } from '../../support/running.ts';

const ask = { say: 'I look.', calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };

// biome-ignore lint/suspicious/noExplicitAny: what is expected of each body is in its test
type Loose = any;

/** A receiver that answers with a status. */
const startReceiver = async (statusOf: (request: number) => number = () => 204) => {
  const received: { headers: IncomingHttpHeaders; body: Loose; status: number }[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => {
      const status = statusOf(received.length + 1);
      received.push({ headers: request.headers, body: JSON.parse(text), status });
      response.writeHead(status, { location: '/elsewhere' }).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const taken = () => received.filter(({ status }) => status === 204);
  const states = () =>
    taken().flatMap(
      ({ body }) => body.statusUpdate?.status.state ?? body.artifactUpdate?.artifact.artifactId,
    );
  return { url, received, taken, states };
};

const start = async (setting?: Setting) => {
  const server = await startServer(setting);
  const call = async (method: string, params: object): Promise<Loose> =>
    (await server.post({ jsonrpc: '2.0', id: 1, method, params }, '/a2a')).body;
  const send = (text: string, more: object = {}, configuration: object = {}) =>
    call('SendMessage', {
      message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }], ...more },
      configuration,
    });
  const configs = createPushConfigs(server.ledger.db);
  return { ...server, call, send, configs };
};
const changes = (all: readonly string[]) => all.filter((each, index) => each !== all[index - 1]);

test('a receiver is told of a run in order, signed and with what was configured; then it is forgotten', async () => {
  const receiver = await startReceiver();
  const { send, configs } = await start({ turns: [ask, bash('true'), finish('all good')] });

  const taskPushNotificationConfig = {
    ...{ url: receiver.url, token: 'hook-token' },
    authentication: { scheme: 'Bearer', credentials: 'of-receiver' },
  };
  const { id } = (await send('Serve', {}, { taskPushNotificationConfig })).result.task;
  await send('8080', { taskId: id });
  await vi.waitFor(() => expect(receiver.states().at(-1)).toBe('TASK_STATE_COMPLETED'), 5_000);

  expect(changes(receiver.states().filter((each) => each !== 'TASK_STATE_SUBMITTED'))).toEqual([
    'TASK_STATE_WORKING',
    'transcript',
    'TASK_STATE_WORKING',
    'TASK_STATE_INPUT_REQUIRED',
    'TASK_STATE_WORKING',
    'results',
    'TASK_STATE_COMPLETED',
  ]);
  expect(receiver.received[0]?.headers).toMatchObject({
    'content-type': 'application/a2a+json',
    'x-a2a-notification-token': 'hook-token',
    authorization: 'Bearer of-receiver',
    'webhook-signature': expect.stringMatching(/^v1,/),
  });
  await vi.waitFor(() => expect(configs.all()).toEqual([]));
});

test('configs are made, read without credentials, listed and deleted, which twice is no error', async () => {
  const receiver = await startReceiver();
  const { send, call } = await start({ turns: [hang] });
  const { id } = (await send('One', {}, { returnImmediately: true })).result.task;
  const given = {
    ...{ taskId: id, id: 'mine', url: receiver.url },
    authentication: { scheme: 'Bearer', credentials: 'secret-of-mine' },
  };

  const made = await call('CreateTaskPushNotificationConfig', given);
  const other = await call('CreateTaskPushNotificationConfig', { taskId: id, url: receiver.url });
  const read = await call('GetTaskPushNotificationConfig', { taskId: id, id: 'mine' });
  const listed = await call('ListTaskPushNotificationConfigs', { taskId: id });
  const gone = await call('DeleteTaskPushNotificationConfig', { taskId: id, id: 'mine' });
  const twice = await call('DeleteTaskPushNotificationConfig', { taskId: id, id: 'mine' });
  const none = await call('GetTaskPushNotificationConfig', { taskId: id, id: 'mine' });
  const noTask = await call('CreateTaskPushNotificationConfig', { ...given, taskId: 'bd-none' });

  expect(made.result).toEqual({
    ...{ taskId: id, id: 'mine', url: receiver.url, authentication: { scheme: 'Bearer' } },
  });
  expect([read.result, other.result.id]).toEqual([made.result, expect.any(String)]);
  expect(listed.result.configs.map((each: Loose) => each.id).sort()).toEqual(
    ['mine', other.result.id].sort(),
  );
  expect([gone.result, twice.result, none.error.code, noTask.error.code]).toEqual([
    ...[{}, {}, -32001, -32001],
  ]);
  expect(JSON.stringify([made, read, listed])).not.toContain('secret-of-mine');
});

test('a task that is over takes configs, tells them nothing, and keeps the latest hundred', async () => {
  const receiver = await startReceiver();
  const { send, call, configs } = await start({ turns: Array(11).fill(finish('done')) });
  const ids: string[] = [];
  for (let made = 0; made < 11; made += 1) ids.push((await send('One')).result.task.id);
  const [first = '', last = ''] = [ids[0], ids.at(-1)];
  const given = { taskId: first, id: 'mine', url: receiver.url };

  const made = await call('CreateTaskPushNotificationConfig', given);
  await call('CreateTaskPushNotificationConfig', given);
  const read = await call('GetTaskPushNotificationConfig', { taskId: first, id: 'mine' });
  for (const taskId of ids.slice(1))
    for (let more = 0; more < 10; more += 1)
      await call('CreateTaskPushNotificationConfig', { taskId, url: receiver.url });
  const gone = await call('GetTaskPushNotificationConfig', { taskId: first, id: 'mine' });
  const listed = await call('ListTaskPushNotificationConfigs', { taskId: last });

  expect([made.result, read.result]).toEqual([given, given]);
  expect([gone.error.code, listed.result.configs.length]).toEqual([-32001, 10]);
  expect([await configs.count(), receiver.received]).toEqual([100, []]);
});

test.each([
  ['a private address', 'http://10.0.0.1/'],
  ['the metadata of a cloud', 'http://169.254.169.254/latest'],
  ['another protocol', 'file:///etc/passwd'],
  ['no address', 'x'],
])('%s is refused, and no task is made', async (_, url) => {
  const { send, call, service } = await start({ turns: [hang] });

  const sent = await send('One', {}, { taskPushNotificationConfig: { url } });
  const open = await service.create({ description: 'Two' });
  const made = await call('CreateTaskPushNotificationConfig', { taskId: open.task_id, url });

  expect([sent.error.code, made.error.code]).toEqual([-32602, -32602]);
  expect((await service.list({})).tasks).toHaveLength(1);
});

test('a fault of the receiver is tried again, a refusal and a redirect are not', async () => {
  const failing = await startReceiver((request) => (request === 1 ? 503 : 204));
  const refusing = await startReceiver(() => 302);
  const { send, configs } = await start({ turns: [finish('done')] });

  await send('One', {}, { taskPushNotificationConfig: { url: failing.url, token: 'hook-token' } });
  await send('Two', {}, { taskPushNotificationConfig: { url: refusing.url } });
  await vi.waitFor(() => expect(failing.states().at(-1)).toBe('TASK_STATE_COMPLETED'), 10_000);
  await vi.waitFor(() => expect(configs.all()).toEqual([]), 5_000);

  expect(failing.received[1]?.body).toEqual(failing.received[0]?.body);
  const ids = failing.received.map(({ headers }) => headers['webhook-id']);
  expect(ids[1]).toBe(ids[0]);
  expect(new Set(ids).size).toBe(failing.received.length - 1);
  const told = new Set(refusing.received.map(({ body }) => JSON.stringify(body)));
  expect(told.size).toBe(refusing.received.length);
});

test('a new server goes on where the last one was: nothing is lost', async () => {
  const receiver = await startReceiver();
  const first = await start({ turns: [ask, bash('true'), finish('all good')] });
  const { id } = (
    await first.send('One', {}, { taskPushNotificationConfig: { url: receiver.url } })
  ).result.task;
  await vi.waitFor(() => expect(receiver.states()).toContain('TASK_STATE_INPUT_REQUIRED'), 5_000);
  const before = receiver.received.length;
  const { root, stateDir } = first;
  await first.app.close();
  await first.stop();

  const second = await start({ root, stateDir, turns: [ask, bash('true'), finish('all good')] });
  await second.send('8080', { taskId: id });
  await vi.waitFor(() => expect(receiver.states().at(-1)).toBe('TASK_STATE_COMPLETED'), 10_000);

  const later = receiver.states().slice(before);
  expect(later.filter((each) => each === 'TASK_STATE_COMPLETED')).toHaveLength(1);
  expect(later).not.toContain('TASK_STATE_SUBMITTED');
});

test('a full disk while a notification waits: all is told, again if need be, and the config ends', async () => {
  const receiver = await startReceiver();
  const { service, store, configs } = await start({ turns: [finish('done')] });
  let refusals = 4;
  const whenRoom = (write: () => void | Promise<void>) => async (): Promise<void> => {
    refusals -= 1;
    if (refusals >= 0) throw new Error('database or disk is full');
    await write();
  };
  const { task_id: run } = await service.create({ description: 'One' });
  const delivery = createPushDelivery({
    configs: {
      ...configs,
      setSent: (...args) => whenRoom(() => configs.setSent(...args))(),
      remove: (...args) => whenRoom(() => configs.remove(...args))(),
    },
    follows: { store, patchOf: async () => [] },
    readAt: ({ sent }) => readRunAt({ store, status: service.status }, run, sent),
    ...{ redact: (text: string) => text, now: Date.now, log: () => {} },
    times: { requestMs: 1_000, firstPauseMs: 5, storePauseMs: 5 },
  });
  onTestFinished(delivery.stopAll);
  const config = { run, id: 'p', version: '1.0', url: receiver.url, sent: 0 };
  const full = { ...config, token: null, scheme: null, credentials: null };
  await configs.put(full);

  delivery.start(full);
  await service.execute({ task: run, role: 'engineer', options: {} });
  await vi.waitFor(() => expect(configs.all()).toEqual([]), 5_000);

  expect(refusals).toBeLessThan(0);
  expect(receiver.states()).toContain('results');
  expect(receiver.states().at(-1)).toBe('TASK_STATE_COMPLETED');
});

test('a client of 0.3 is told in its own shapes', async () => {
  const receiver = await startReceiver();
  const { call } = await start({
    turns: [bash('sleep 0.5'), finish('done')],
    a2a: { versions: ['0.3'] },
  });
  const message = {
    kind: 'message',
    messageId: 'm',
    role: 'user',
    parts: [{ kind: 'text', text: 'x' }],
  };
  const { id } = (await call('message/send', { message, configuration: { blocking: false } }))
    .result;

  const set = await call('tasks/pushNotificationConfig/set', {
    taskId: id,
    pushNotificationConfig: {
      id: 'p',
      url: receiver.url,
      authentication: { schemes: ['Basic'], credentials: 'x' },
    },
  });
  const list = await call('tasks/pushNotificationConfig/list', { id });
  const only = await call('tasks/pushNotificationConfig/get', { id });
  const other = await call('tasks/pushNotificationConfig/get', {
    id,
    pushNotificationConfigId: 'q',
  });
  await vi.waitFor(
    () =>
      expect(receiver.received.at(-1)?.body).toMatchObject({ kind: 'status-update', final: true }),
    5_000,
  );

  const shown = {
    taskId: id,
    pushNotificationConfig: { id: 'p', url: receiver.url, authentication: { schemes: ['Basic'] } },
  };
  expect([set.result, list.result, only.result]).toEqual([shown, [shown], shown]);
  expect(other.error.code).toBe(-32001);
  expect(receiver.received.at(-1)?.body.status.state).toBe('completed');
});

test('at most ten for a task', async () => {
  const receiver = await startReceiver();
  const { send, call } = await start({ turns: [hang] });
  const { id } = (await send('One', {}, { returnImmediately: true })).result.task;

  const answers: Loose[] = [];
  for (let made = 0; made < 11; made += 1)
    answers.push(await call('CreateTaskPushNotificationConfig', { taskId: id, url: receiver.url }));

  expect(answers.map(({ error }) => error?.code ?? 'ok')).toEqual([
    ...Array(10).fill('ok'),
    -32004,
  ]);
});
