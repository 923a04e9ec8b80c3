import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { createWebSocketReceiver } from '@statelyai/inspect';
import { expect, onTestFinished, test, vi } from 'vitest';
import { finish, startServer, token, untilStatus } from '../support/running.ts';

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
};

/** The example that users run, with the real server and the real client of @statelyai/inspect. */
const connectInspector = async (base: string) => {
  const port = await freePort();
  const example = fileURLToPath(new URL('../../examples/inspector.mjs', import.meta.url));
  const bridge: ChildProcess = spawn(process.execPath, [example, base, token, String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void bridge.kill());
  await once(bridge.stdout as NonNullable<typeof bridge.stdout>, 'data');
  return createWebSocketReceiver({ server: `ws://localhost:${port}` });
};

type Seen = Readonly<Record<string, unknown>> & { readonly type: string };

test("the official inspector sees a task's machines from their definitions to the end", async () => {
  const server = await startServer({ inspect: true, turns: [finish()] });
  const { task_id } = (await server.call('create', { description: 'a task' })).result;
  const receiver = await connectInspector(server.base);
  const seen: Seen[] = [];
  const complete = new Promise<void>((resolve) => {
    receiver.subscribe((event) => {
      const message = event as unknown as Seen;
      seen.push(message);
      if (
        message.type === '@xstate.snapshot' &&
        (message['snapshot'] as { value?: unknown }).value === 'complete'
      )
        resolve();
    });
  });
  while (!seen.some(({ type }) => type === '@xstate.actor'))
    await new Promise((resolve) => setTimeout(resolve, 20));

  await server.call('execute', { task_id, role: 'engineer' });
  await complete;

  const definitions = seen
    .filter(({ type }) => type === '@xstate.actor')
    .map(({ definition }) => JSON.parse(String(definition)) as { id: string; states?: object });
  expect(definitions.map(({ id }) => id)).toEqual(
    expect.arrayContaining(['supervisor', 'task', 'agent']),
  );
  expect(Object.keys(definitions.find(({ id }) => id === 'task')?.states ?? {})).toEqual([
    'queued',
    'started',
    'complete',
    'failed',
    'cancelled',
  ]);
  expect(
    seen.some(
      ({ type, event }) => type === '@xstate.event' && (event as { type: string }).type === 'run',
    ),
  ).toBe(true);
  const machineOf = new Map(
    seen
      .filter(({ type }) => type === '@xstate.actor')
      .map(({ sessionId, definition }) => [
        sessionId,
        (JSON.parse(String(definition)) as { id: string }).id,
      ]),
  );
  for (const kind of ['@xstate.event', '@xstate.snapshot'])
    expect(
      seen.filter(({ type }) => type === kind).map(({ sessionId }) => machineOf.get(sessionId)),
    ).toEqual(expect.arrayContaining(['supervisor', 'task', 'agent']));
  for (const message of seen)
    expect(message).toMatchObject({
      sessionId: expect.any(String),
      rootId: expect.any(String),
      _version: expect.any(String),
    });
});

test("the official inspector sees a workflow's chart, its states and its end", async () => {
  const server = await startServer({ inspect: true });
  const receiver = await connectInspector(server.base);
  const seen: Seen[] = [];
  receiver.subscribe((event) => void seen.push(event as unknown as Seen));
  await vi.waitFor(() => expect(seen.map(({ type }) => type)).toContain('@xstate.actor'));

  const { result } = await server.call('workflow.start', { kind: 'feature', name: 'Export' });
  const ended = await server.call('workflow.cancel', { workflow_id: result.workflow_id });
  expect(ended.result.status).toBe('cancelled');

  const actorOfWorkflow = () =>
    seen.find(
      ({ type, definition }) =>
        type === '@xstate.actor' && JSON.parse(String(definition)).id === 'workflow',
    );
  const own = (kind: string) =>
    seen.filter(
      ({ type, sessionId }) => type === kind && sessionId === actorOfWorkflow()?.['sessionId'],
    );
  const states = () =>
    own('@xstate.snapshot').map(({ snapshot }) =>
      JSON.stringify((snapshot as { value: unknown }).value),
    );
  await vi.waitFor(() => expect(states()).toContain('"cancelled"'));
  expect(Object.keys(JSON.parse(String(actorOfWorkflow()?.['definition'])).states)).toEqual([
    ...['active', 'cancelling', 'complete', 'stopped', 'failed', 'cancelled'],
  ]);
  expect(states()).toEqual(expect.arrayContaining(['{"active":"choosing"}', '"cancelling"']));
  expect(own('@xstate.event').map(({ event }) => (event as { type: string }).type)).toContain(
    'cancel',
  );
});

test('the inspection stream needs the token, contains no secret, and exists only with --inspect', async () => {
  const server = await startServer({ inspect: true, turns: [finish('the password is hunter2')] });
  const { task_id } = (await server.call('create', { description: 'a task' })).result;
  const refused = await fetch(`${server.base}/inspect`);
  const response = await fetch(`${server.base}/inspect`, { headers: server.headers });
  await server.call('execute', { task_id, role: 'engineer' });
  await untilStatus(server, task_id, 'complete');
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk);
    if (text.includes('the password is')) break;
  }
  const plain = await startServer();

  expect(refused.status).toBe(401);
  expect(text).toContain('the password is ***');
  expect(text).not.toContain('hunter2');
  expect((await fetch(`${plain.base}/inspect`, { headers: plain.headers })).status).toBe(404);
});

test('the stream has the microsteps of a transition before its snapshot, and the actions', async () => {
  const server = await startServer({ inspect: true, turns: [finish()] });
  const { task_id } = (await server.call('create', { description: 'a task' })).result;
  const response = await fetch(`${server.base}/inspect`, { headers: server.headers });
  await server.call('execute', { task_id, role: 'engineer' });
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (/"@xstate.snapshot".*"value":"complete"/.test(text)) break;
  }

  const seen = text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => JSON.parse(event.slice('data: '.length)) as Seen);
  const task = seen.find(
    ({ type, definition }) =>
      type === '@xstate.actor' && (JSON.parse(String(definition)) as { id: string }).id === 'task',
  );
  const own = seen.filter(({ sessionId }) => sessionId === task?.['sessionId']);
  const found = own.findIndex(
    ({ type, value }) =>
      type === '@xstate.microstep' && JSON.stringify(value) === '{"queued":"existing"}',
  );
  const steps = own.slice(found, found + 3);
  expect(steps.map(({ type, value }) => [type, value])).toEqual([
    ['@xstate.microstep', { queued: 'existing' }],
    ['@xstate.microstep', { queued: 'ready' }],
    ['@xstate.microstep', { queued: 'free' }],
  ]);
  const after = own.slice(found).find(({ type }) => type === '@xstate.snapshot');
  expect(after).toBeDefined();
  const actions = own
    .filter(({ type }) => type === '@xstate.action')
    .map(({ action }) => (action as { type: string }).type);
  expect(actions).toContain('xstate.spawnChild');
});
