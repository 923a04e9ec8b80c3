import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from 'a2a03/client';
import { expect, test } from 'vitest';
import { bash, finish, hang, startServer, untilStatus } from '../../support/running.ts';

type Server = Awaited<ReturnType<typeof startServer>>;

const ask = { say: 'I look.', calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };

/** The official client of A2A 0.3. */
const connect = ({ base, headers }: Pick<Server, 'base' | 'headers'>) => {
  const fetchImpl: typeof fetch = (input, init) => {
    const all = new Headers(init?.headers);
    all.set('authorization', headers.authorization);
    return fetch(input, { ...init, headers: all });
  };
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
  });
  return new ClientFactory(options).createFromUrl(base);
};

const says = (text: string, more: object = {}) => ({
  message: {
    ...{ kind: 'message' as const, messageId: 'm', role: 'user' as const },
    parts: [{ kind: 'text' as const, text }],
    ...more,
  },
});

const start = (setting: object) => startServer({ ...setting, a2a: { versions: ['1.0', '0.3'] } });

test('the official client of 0.3 sends, is asked, answers, and reads', async () => {
  const server = await start({ turns: [ask, bash('true'), finish('all good')] });
  const client = await connect(server);

  const asked = await client.sendMessage(says('Serve the page'));
  if (asked.kind !== 'task') throw new Error('expected a task');
  const done = await client.sendMessage(says('8080', { taskId: asked.id }));
  const read = await client.getTask({ id: asked.id });

  expect(asked).toMatchObject({
    status: {
      state: 'input-required',
      message: { parts: [{ kind: 'text', text: 'Which port?' }] },
    },
  });
  expect(done).toMatchObject({ kind: 'task', status: { state: 'completed' } });
  expect(read.history?.map(({ kind, role }) => [kind, role])).toEqual([
    ['message', 'user'],
    ['message', 'agent'],
    ['message', 'user'],
  ]);
  expect(read.artifacts?.map(({ artifactId }) => artifactId)).toEqual(['transcript', 'results']);
});

test('it streams up to a question, subscribes again, and the last event says so', async () => {
  const server = await start({ turns: [ask, bash('true'), finish('all good')] });
  const client = await connect(server);
  const events = async (stream: AsyncIterable<{ readonly kind: string }>) => {
    const seen: { readonly kind: string; readonly final?: boolean; readonly id?: string }[] = [];
    for await (const event of stream) seen.push(event);
    return seen;
  };

  const first = await events(client.sendMessageStream(says('Serve')));
  const id = first[0]?.id ?? '';
  const rest = events(client.resubscribeTask({ id }));
  await new Promise((resolve) => setTimeout(resolve, 100));
  await client.sendMessage(says('8080', { taskId: id }));
  const later = await rest;

  expect([first[0]?.kind, first.at(-1)]).toMatchObject([
    'task',
    { kind: 'status-update', final: true, status: { state: 'input-required' } },
  ]);
  expect(first.filter(({ final }) => final === true)).toHaveLength(1);
  expect(later[0]).toMatchObject({ kind: 'task', status: { state: 'input-required' } });
  expect(later.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
  expect(later.some(({ kind }) => kind === 'artifact-update')).toBe(true);
});

test('it subscribes again after its stream was cut', async () => {
  const wait = bash('until [ -e go ]; do sleep 0.05; done');
  const server = await start({ turns: [{ say: 'I look.', ...wait }, finish('all good')] });
  const client = await connect(server);
  let id = '';

  for await (const event of client.sendMessageStream(says('Serve'))) {
    if (event.kind === 'task') id = event.id;
    if (event.kind === 'artifact-update') break;
  }
  const again = client.resubscribeTask({ id });
  const first = (await again.next()).value;
  writeFileSync(join(server.root, 'go'), '');
  const rest: unknown[] = [];
  for await (const event of again) rest.push(event);

  expect(first).toMatchObject({ kind: 'task', id, status: { state: 'working' } });
  expect(rest.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
});

test('it cancels, and returns at once when it does not block', async () => {
  const server = await start({ turns: [hang] });
  const client = await connect(server);

  const begun = await client.sendMessage({ ...says('x'), configuration: { blocking: false } });
  if (begun.kind !== 'task') throw new Error('expected a task');
  await untilStatus(server, begun.id, 'started');
  const cancelled = await client.cancelTask({ id: begun.id });

  expect(begun.status.state).toMatch(/submitted|working/);
  expect(cancelled.status.state).toBe('canceled');
  await expect(client.getTask({ id: 'bd-none' })).rejects.toThrow(/Task not found/);
});

test('without it in a2a.versions its methods are refused by name, and the card has none of it', async () => {
  const { base, call } = await startServer();
  const both = await start({});

  const refused = await call('message/send', says('x'));
  const cards = await Promise.all(
    [
      fetch(`${base}/.well-known/agent-card.json`),
      fetch(`${both.base}/.well-known/agent-card.json`),
      fetch(`${both.base}/.well-known/agent-card.json`, { headers: { 'a2a-version': '1.0' } }),
      fetch(`${both.base}/.well-known/agent.json`),
    ].map(async (asked) => ((await (await asked).json()) as { url?: string }).url),
  );

  expect(refused.error.code).toBe(-32009);
  expect(cards).toEqual([undefined, `${both.base}/a2a`, undefined, `${both.base}/a2a`]);
  expect((await call('ListTasks', {})).result.tasks).toEqual([]);
});

test('a refusal of its streams reaches it as an error of A2A', async () => {
  const server = await start({ turns: [finish('done')] });
  const client = await connect(server);
  const { id } = (await client.sendMessage(says('One'))) as { readonly id: string };
  const refusals: unknown[] = [];
  const read = async (stream: AsyncIterable<unknown>): Promise<void> => {
    for await (const _ of stream);
  };

  for (const stream of [
    client.resubscribeTask({ id }),
    client.resubscribeTask({ id: 'bd-none' }),
    client.sendMessageStream(says('', { parts: [] })),
  ])
    await read(stream).catch((error: Error) => refusals.push(error.message));

  expect(refusals).toEqual([
    expect.stringContaining(`task ${id} is over; read it with GetTask (Code: -32004)`),
    expect.stringContaining('task bd-none does not exist (Code: -32001)'),
    expect.stringContaining('(Code: -32602)'),
  ]);
});

test('its errors have the codes of 0.3', async () => {
  const server = await start({ turns: [finish('done')] });
  const call = async (method: string, params: object) => {
    const { body } = await server.post({ jsonrpc: '2.0', id: 1, method, params }, '/a2a');
    return body as { result: { id: string }; error: { code: number } };
  };
  const { id } = (await call('message/send', says('One'))).result;
  const image = { kind: 'file', file: { mimeType: 'video/mp4', bytes: 'AAAA' } };
  const push = { taskId: id, pushNotificationConfig: { url: 'http://10.0.0.1/' } };

  const answers = await Promise.all([
    call('tasks/get', { id: 'bd-none' }),
    call('tasks/get', { id, historyLength: -1 }),
    call('tasks/cancel', { id }),
    call('message/send', says('More', { taskId: id })),
    call('message/send', says('More', { parts: [image] })),
    call('message/send', { message: null }),
    call('tasks/pushNotificationConfig/get', { id }),
    call('tasks/pushNotificationConfig/set', push),
    call('tasks/none', {}),
  ]);

  expect(answers.map(({ error }) => error.code)).toEqual([
    ...[-32001, -32602, -32002, -32004, -32005, -32602],
    ...[-32001, -32602, -32601],
  ]);
});
