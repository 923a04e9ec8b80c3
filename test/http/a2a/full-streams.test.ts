import { expect, test } from 'vitest';
import { finish, startServer } from '../../support/running.ts';

test('where no stream is free, a message for a stream makes no task: its client may send it again', async () => {
  const { base, headers, service } = await startServer({ turns: [finish('done')] });
  const ends = new AbortController();
  for (let open = 0; open < 10; open += 1)
    await fetch(`${base}/stream`, { headers, signal: ends.signal });
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'Costs money' }] };
  const params = { message };
  const post = (path: string, body: object) =>
    fetch(`${base}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });

  const rpc = await post('/a2a', {
    ...{ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params },
  });
  const rest = await post('/a2a/rest/message:stream', params);
  ends.abort();

  expect([rpc.status, rest.status]).toEqual([503, 503]);
  expect(rpc.headers.get('retry-after')).toMatch(/^\d+$/);
  expect((await service.list({})).tasks).toEqual([]);
});
