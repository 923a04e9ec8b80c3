import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { isLong } from '../../support/long.ts';
import { bash, finish, startServer } from '../../support/running.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const tasks = 450;
const heapMiB = (): number => {
  collect();
  return process.memoryUsage().heapUsed / 1024 ** 2;
};

test('a client that works for hours, and is cut off again and again, loses no event and no memory', async ({
  skip,
}) => {
  if (!isLong) return skip('npm run test:long runs many tasks');
  const { base, headers, call } = await startServer({
    turns: [bash('true'), finish('done')],
  });
  const reader = async (method: string, params: object) => {
    const gone = new AbortController();
    const response = await fetch(`${base}/a2a`, {
      ...{ method: 'POST', headers, signal: gone.signal },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return { body: response.body as ReadableStream<Uint8Array>, cut: () => gone.abort() };
  };
  const once = async (text: string): Promise<string> => {
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] };
    const sent = await reader('SendStreamingMessage', { message });
    const { value } = await sent.body.getReader().read();
    const id = /"id":"(bd-[^"]+)"/.exec(new TextDecoder().decode(value))?.[1] ?? '';
    sent.cut();
    const again = await reader('SubscribeToTask', { id });
    await again.body.getReader().read();
    again.cut();
    const last = await reader('SubscribeToTask', { id });
    let said = '';
    for await (const piece of last.body.pipeThrough(new TextDecoderStream())) said += piece;
    const { result } = (await call('GetTask', { id })) as { result: { status: { state: string } } };
    // A task may be over before the client is back; then there is nothing to follow.
    expect(said).toMatch(/TASK_STATE_COMPLETED|is over; read it with GetTask/);
    return result.status.state;
  };

  const heaps: number[] = [];
  for (let at = 0; at < tasks; at += 1) {
    expect(await once(`Work ${at}`)).toBe('TASK_STATE_COMPLETED');
    if (at % 150 === 149) heaps.push(heapMiB());
  }

  const [first = 0, , last = 0] = heaps;
  // The list of tasks is in memory; what a client cost is not.
  expect((last - first) / (tasks - 150), heaps.join(' ')).toBeLessThan(0.005);
}, 600_000);
