import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Message, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { describe, expect, test } from 'vitest';
import { bash, finish, hang, startServer, type Turn, untilStatus } from '../../support/running.ts';

type Server = Awaited<ReturnType<typeof startServer>>;
type Binding = 'JSONRPC' | 'HTTP+JSON';

const ask: Turn = {
  say: 'I look. ',
  calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }],
};

/** The official client, which finds the server by its card. */
const connect = (
  { base, headers }: Pick<Server, 'base' | 'headers'>,
  binding: Binding,
  card?: string,
): Promise<Client> => {
  const fetchImpl: typeof fetch = (input, init) => {
    const all = new Headers(init?.headers);
    all.set('authorization', headers.authorization);
    return fetch(input, { ...init, headers: all });
  };
  const Factory = binding === 'JSONRPC' ? JsonRpcTransportFactory : RestTransportFactory;
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new Factory({ fetchImpl })],
    preferredTransports: [binding],
  });
  return new ClientFactory(options).createFromUrl(base, card);
};

const sends = (text: string, more: Partial<Message> = {}) => ({
  tenant: '',
  message: {
    ...{ messageId: 'always-the-same', role: 1, contextId: '', taskId: '' },
    ...{ extensions: [], referenceTaskIds: [], metadata: undefined },
    parts: [
      {
        content: { $case: 'text' as const, value: text },
        ...{ filename: '', mediaType: '', metadata: undefined },
      },
    ],
    ...more,
  } as Message,
  configuration: undefined,
  metadata: undefined,
});

const asTask = (value: unknown): Task => value as Task;
const stateOf = (task: Task): string => TaskState[task.status?.state ?? 0] ?? '';
const textOf = (message: Message | undefined): string =>
  (message?.parts ?? [])
    .map(({ content }) => (content?.$case === 'text' ? content.value : ''))
    .join('');

const eventsOf = async (stream: AsyncIterable<StreamResponse>): Promise<string[]> => {
  const seen: string[] = [];
  for await (const { payload } of stream) {
    if (payload?.$case === 'task') seen.push(`task ${stateOf(payload.value)}`);
    if (payload?.$case === 'statusUpdate')
      seen.push(TaskState[payload.value.status?.state ?? 0] ?? '');
    if (payload?.$case === 'artifactUpdate')
      seen.push(`artifact ${payload.value.artifact?.artifactId}`);
  }
  return seen;
};
const changes = (events: readonly string[]): readonly string[] =>
  events.filter((event, index) => event !== events[index - 1]);

describe.each<Binding>(['JSONRPC', 'HTTP+JSON'])('the official client over %s', (binding) => {
  test('sends a task, answers its question, and reads its results', async () => {
    const server = await startServer({ turns: [ask, bash('true'), finish('all good')] });
    const client = await connect(server, binding);

    const asked = asTask(await client.sendMessage(sends('Serve the page')));
    const { id, contextId } = asked;
    const done = asTask(await client.sendMessage(sends('8080', { taskId: id, contextId })));
    const read = await client.getTask({ tenant: '', id, historyLength: undefined });
    const short = await client.getTask({ tenant: '', id, historyLength: 1 });

    expect([stateOf(asked), textOf(asked.status?.message)]).toEqual([
      'TASK_STATE_INPUT_REQUIRED',
      'Which port?',
    ]);
    expect([stateOf(done), textOf(done.status?.message)]).toEqual([
      'TASK_STATE_COMPLETED',
      'all good',
    ]);
    expect(read.history.map((message) => [message.role, textOf(message)])).toEqual([
      [1, 'Serve the page'],
      [2, 'Which port?'],
      [1, '8080'],
    ]);
    expect(short.history.map(textOf)).toEqual(['8080']);
    expect(read.artifacts.map(({ artifactId }) => artifactId)).toEqual(['transcript', 'results']);
    const view = await server.call('status', { task_id: id });
    expect(view.result).toMatchObject({ status: 'complete', result: 'all good' });
  });

  test('streams a run up to its question, and subscribes again up to its end', async () => {
    const server = await startServer({ turns: [ask, bash('true'), finish('all good')] });
    const client = await connect(server, binding);

    const first: string[] = await eventsOf(client.sendMessageStream(sends('Serve')));
    const { tasks } = await client.listTasks({
      ...{
        tenant: '',
        contextId: '',
        pageSize: undefined,
        pageToken: '',
        historyLength: undefined,
      },
      ...{ status: 0, statusTimestampAfter: undefined, includeArtifacts: undefined },
    });
    const id = tasks[0]?.id ?? '';
    const one = eventsOf(client.resubscribeTask({ tenant: '', id }));
    const other = eventsOf(client.resubscribeTask({ tenant: '', id }));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await client.sendMessage(sends('8080', { taskId: id }));

    expect(first[0]).toMatch(/^task TASK_STATE_(SUBMITTED|WORKING)$/);
    expect(changes(first.filter((event) => !event.endsWith('SUBMITTED'))).slice(-4)).toEqual([
      'TASK_STATE_WORKING',
      'artifact transcript',
      'TASK_STATE_WORKING',
      'TASK_STATE_INPUT_REQUIRED',
    ]);
    expect(changes(await one)).toEqual([
      'task TASK_STATE_INPUT_REQUIRED',
      'TASK_STATE_WORKING',
      'artifact results',
      'TASK_STATE_COMPLETED',
    ]);
    expect(await other).toEqual(await one);
  });

  test('subscribes again after its stream was cut, and misses nothing of the task', async () => {
    const wait = bash('until [ -e go ]; do sleep 0.05; done');
    const server = await startServer({ turns: [{ say: 'I look. ', ...wait }, finish('all good')] });
    const client = await connect(server, binding);
    let id = '';

    for await (const { payload } of client.sendMessageStream(sends('Serve'))) {
      if (payload?.$case === 'task') id = payload.value.id;
      if (payload?.$case === 'artifactUpdate') break;
    }
    const again = client.resubscribeTask({ tenant: '', id });
    const first = (await again.next()).value?.payload;
    writeFileSync(join(server.root, 'go'), '');
    const rest = await eventsOf(again);

    expect(first).toMatchObject({ $case: 'task', value: { id } });
    expect(asTask(first?.value).artifacts.map(({ artifactId }) => artifactId)).toEqual([
      'transcript',
    ]);
    expect(rest).toContain('artifact results');
    expect(rest.at(-1)).toBe('TASK_STATE_COMPLETED');
  });

  test('cancels a task that is at work', async () => {
    const server = await startServer({ turns: [hang] });
    const client = await connect(server, binding);

    const configuration = {
      ...{ acceptedOutputModes: [], taskPushNotificationConfig: undefined },
      ...{ historyLength: undefined, returnImmediately: true },
    };
    const { id } = asTask(await client.sendMessage({ ...sends('Serve'), configuration }));
    await untilStatus(server, id, 'started');
    const cancelled = await client.cancelTask({ tenant: '', id, metadata: undefined });
    const again = await client.cancelTask({ tenant: '', id, metadata: undefined });

    expect([stateOf(cancelled), stateOf(again)]).toEqual([
      'TASK_STATE_CANCELED',
      'TASK_STATE_CANCELED',
    ]);
  });

  test('chooses a role by its card', async () => {
    const server = await startServer({ turns: [finish('reviewed')] });
    const client = await connect(server, binding, '/agents/reviewer/.well-known/agent-card.json');

    const { id } = asTask(await client.sendMessage(sends('Look at it')));

    expect((await server.call('status', { task_id: id })).result).toMatchObject({
      role: 'reviewer',
    });
  });

  test('learns what is wrong', async () => {
    const server = await startServer();
    const client = await connect(server, binding);

    const unknown = client.getTask({ tenant: '', id: 'bd-none', historyLength: undefined });

    await expect(unknown).rejects.toThrow(/bd-none does not exist/);
  });
});
