import { expect, test, vi } from 'vitest';
import { createMcpSession } from '../../../src/http/mcp/session.ts';

interface Sent {
  readonly id?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: Readonly<Record<string, unknown>>;
}

type Backend = Parameters<typeof createMcpSession>[0]['backend'];

const open = (own: Partial<Backend> = {}) => {
  const sent: Sent[] = [];
  const session = createMcpSession({
    identity: { name: 'server', version: '1' },
    send: (message) => sent.push(message),
    backend: {
      answerPolicy: () => 'questions',
      call: async (_method, params) => ({ phase: 'thinking', status: 'started', params }),
      frames: async function* (_taskId, signal) {
        if (!signal.aborted)
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      },
      describeError: (error) => ({ code: 'invalid_params', message: String(error), facts: {} }),
      ...own,
    },
  });
  const take = async (message: unknown): Promise<Sent | undefined> => {
    const before = sent.length;
    await session.take(typeof message === 'string' ? message : JSON.stringify(message));
    return sent[before];
  };
  const request = (id: number, method: string, params: object = {}) =>
    take({ jsonrpc: '2.0', id, method, params });
  const initialize = (protocolVersion: unknown) =>
    request(0, 'initialize', { protocolVersion, capabilities: {} });
  return { session, sent, take, request, initialize };
};

test.each([
  ['text that is not JSON', '{', -32700],
  ['null', 'null', -32600],
  ['an empty batch', '[]', -32600],
  ['a batch of 21', JSON.stringify(Array(21).fill({})), -32600],
  ['JSON nested 100 deep', `${'['.repeat(100)}${']'.repeat(100)}`, -32600],
  ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
  ['params that are an array', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600],
])('%s is refused', async (_, text, code) => {
  const { take } = open();

  expect((await take(text))?.error?.code).toBe(code);
});

test.each([
  ['2025-03-26', '2025-03-26'],
  ['2025-06-18', '2025-06-18'],
  ['2025-11-25', '2025-11-25'],
  ['1999-01-01', '2025-11-25'],
])('initialize with version %s answers %s', async (asked, answered) => {
  const { initialize } = open();

  expect((await initialize(asked))?.result?.['protocolVersion']).toBe(answered);
});

test('a request before initialize is refused, a ping is not', async () => {
  const { request, initialize } = open();

  const early = await request(1, 'tools/list');
  const ping = await request(2, 'ping');
  const broken = await initialize(7);
  await initialize('2025-11-25');
  const again = await initialize('2025-11-25');

  expect(early?.error?.message).toBe('send initialize before tools/list');
  expect(ping?.result).toEqual({});
  expect(broken?.error?.code).toBe(-32602);
  expect(again?.error?.message).toBe('initialize was sent before');
});

test('unknown methods and tools are errors, bad arguments are a result of the tool', async () => {
  const { request, initialize } = open();
  await initialize('2025-11-25');

  const method = await request(1, 'constructor');
  const tool = await request(2, 'tools/call', { name: 'toString' });
  const fields = { name: 'task_status', arguments: { task: 'bd-1' } };
  const badArguments = await request(3, 'tools/call', fields);
  const resource = await request(4, 'resources/read', { uri: 'file:///etc/passwd' });

  expect(method?.error?.code).toBe(-32601);
  expect(tool?.error?.code).toBe(-32602);
  expect(badArguments?.result?.['isError']).toBe(true);
  expect(resource?.error?.code).toBe(-32002);
});

test('a merge that is tested for longer than clients wait answers in time, and goes on', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const tested = new Promise((resolve) =>
    setTimeout(() => resolve({ status: 'merged', commit: 'c1' }), 50_000),
  );
  const { request, initialize } = open({ call: () => tested });
  await initialize('2025-11-25');
  const merge = { name: 'merge', arguments: { task_id: 'bd-1' } };

  const first = request(1, 'tools/call', merge);
  await vi.advanceTimersByTimeAsync(46_000);
  const second = request(2, 'tools/call', merge);
  await vi.advanceTimersByTimeAsync(10_000);
  vi.useRealTimers();

  expect((await first)?.result?.['structuredContent']).toMatchObject({
    status: 'waiting',
    to_go_on: expect.stringContaining('call merge again'),
  });
  expect((await second)?.result?.['structuredContent']).toMatchObject({ status: 'merged' });
});

test('a cancelled call ends without an answer, and its id is free again', async () => {
  const { session, sent, request, take, initialize } = open();
  await initialize('2025-11-25');
  const wait = { name: 'wait_for_task', arguments: { task_id: 'bd-1' } };
  const waiting = request(1, 'tools/call', wait);
  const twice = await request(1, 'tools/call', wait);

  await take({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  await waiting;
  const after = sent.length;
  const next = request(1, 'tools/call', wait);
  session.close();
  await next;

  expect(twice?.error?.message).toBe('a request with this id is not answered yet');
  expect(after).toBe(2);
  expect(sent.at(-1)).toMatchObject({ id: 1, result: { structuredContent: {} } });
});

test('more than 100 open calls are refused', async () => {
  const { session, request, initialize } = open();
  await initialize('2025-11-25');
  const wait = { name: 'wait_for_task', arguments: { task_id: 'bd-1' } };
  const waits = Array.from({ length: 100 }, (_, index) => request(index + 1, 'tools/call', wait));

  const refused = await request(101, 'tools/call', wait);
  session.close();
  await Promise.all(waits);

  expect(refused?.error?.message).toContain('at most 100 requests');
});

test('tools say whether they only read, and whether they may destroy', async () => {
  const { request, initialize } = open();
  await initialize('2025-11-25');

  const listed = await request(1, 'tools/list');

  const tools = listed?.result?.['tools'] as readonly {
    readonly name: string;
    readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean };
  }[];
  const hints = tools.map(({ name, annotations }) => {
    if (annotations.readOnlyHint) return `${name} reads`;
    return annotations.destructiveHint ? `${name} may destroy` : `${name} adds`;
  });
  expect(hints).toEqual([
    'create_task adds',
    'run may destroy',
    'task_status reads',
    'list_tasks reads',
    'wait_for_task reads',
    'answer may destroy',
    'diff reads',
    'merge may destroy',
    'publish may destroy',
    'pull_request reads',
    'explain reads',
  ]);
});

test.each([
  [
    'behind what is long',
    (long: string) => `{"method":"ping","params":{"id":1,"a":"${long}"},"id":7}`,
    7,
  ],
  ['before it', (long: string) => `{"jsonrpc":"2.0", "id" : "a\\"7", "params":["${long}"]`, 'a"7'],
  [
    'beside a text with signs of JSON',
    (long: string) => `{"a":"\\",\\"id\\":1}${long}","id":-7.5}`,
    -7.5,
  ],
  ['in a batch', (long: string) => `[{"id":7,"method":"ping","a":"${long}"}]`, null],
  ['as an object', (long: string) => `{"id":{"id":7},"a":"${long}"}`, null],
  ['nowhere', (long: string) => `{"method":"ping","a":"${long}"}`, null],
  ['as part of what is long', (long: string) => `"id":7${long}`, null],
])('a message that is too long is refused once, with its id %s', (_, textOf, id) => {
  const { session, sent } = open();
  const refuse = session.refuseLong(10);

  for (const piece of textOf('x'.repeat(20_000)).match(/[\s\S]{1,7}/g) ?? []) refuse(piece);
  refuse(null);

  expect(sent).toEqual([
    {
      ...{ jsonrpc: '2.0', id },
      error: { code: -32600, message: 'a message holds at most 10 characters' },
    },
  ]);
});
