import { expect, test } from 'vitest';
import { isLong } from '../../support/long.ts';
import { randomFrom, seed } from '../../support/random.ts';
import { finish, startServer } from '../../support/running.ts';

const rounds = isLong ? 4_000 : 300;
const methods = [
  ...['SendMessage', 'SendStreamingMessage', 'GetTask', 'ListTasks', 'CancelTask'],
  ...['SubscribeToTask', 'GetExtendedAgentCard', 'CreateTaskPushNotificationConfig', '__proto__'],
];
const keys = [
  ...['id', 'message', 'messageId', 'role', 'parts', 'text', 'raw', 'url', 'data', 'mediaType'],
  ...['taskId', 'contextId', 'configuration', 'returnImmediately', 'historyLength', 'metadata'],
  ...['pageSize', 'pageToken', 'status', 'tenant', 'referenceTaskIds', 'constructor', '__proto__'],
];

test('no message makes an error of the server, whatever is in it', { tags: ['slow'] }, async () => {
  const random = randomFrom(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <Value>(all: readonly Value[]): Value => all[below(all.length)] as Value;
  const server = await startServer({ turns: [finish('done')] });
  const { result } = await server.call('create', { description: 'One' });
  const words = ['', 'x', result.task_id, `${result.task_id}~2`, '~', '\u0000', '🙂', 'ROLE_USER'];
  const leaf = (): unknown =>
    pick([
      ...[null, true, -1, 0, 1.5, 1e308, Number.MAX_SAFE_INTEGER, [], {}],
      ...words,
      'a'.repeat(70_000),
      'TASK_STATE_WORKING',
      '2026-01-01T00:00:00Z',
      Buffer.from('["a"]').toString('base64url'),
    ]);
  const value = (depth: number): unknown => {
    const kind = depth > 3 ? 0 : below(5);
    if (kind < 3) return leaf();
    if (kind === 3) return Array.from({ length: below(3) }, () => value(depth + 1));
    return Object.fromEntries(
      Array.from({ length: below(4) }, () => [pick(keys), value(depth + 1)]),
    );
  };
  const message = () => ({
    ...{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] },
    [pick(keys)]: value(0),
  });
  const params = (): unknown =>
    pick([
      value(0),
      { id: pick(words) },
      { message: message(), configuration: { returnImmediately: true, [pick(keys)]: value(1) } },
      { [pick(keys)]: value(0), id: pick(words) },
    ]);
  const rest = [
    'tasks',
    'tasks/%00',
    'tasks/x:y:cancel',
    'a/b/c/d/e/f',
    'message:send',
    '%E0%A4%A',
  ];
  const bad: unknown[] = [];
  const ask = async (path: string, init: RequestInit): Promise<void> => {
    const response = await fetch(`${server.base}${path}`, {
      ...{ ...init, signal: AbortSignal.timeout(1_000) },
    }).catch(() => null);
    // A stream of a task stays open, and a message waits for its task.
    const text = (await response?.text().catch(() => '')) ?? '';
    if ((response?.status ?? 0) >= 500 || text.includes('internal error'))
      bad.push([path, init.body, text]);
  };

  for (let round = 0; round < rounds; round += 1) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: pick(methods), params: params() });
    await ask(pick(['/a2a', '/agents/tester/a2a', '/a2a/execute']), {
      ...{ method: 'POST', headers: server.headers, body },
    });
    const path = `/a2a/rest/${pick(rest)}?${pick(keys)}=${encodeURIComponent(String(pick(words)))}`;
    const method = pick(['GET', 'POST', 'DELETE']);
    const given = method === 'GET' ? {} : { body: JSON.stringify(params()) };
    await ask(path, { method, headers: server.headers, ...given });
  }

  expect(bad, `seed ${seed}`).toEqual([]);
});
