import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createOpenAiModel } from '../../src/actors/model/openai/openai.ts';
import { isLong } from '../support/long.ts';
import { type Answer, startModelServer } from '../support/model-server.ts';
import { startServer, untilStatus } from '../support/running.ts';

/** A hostile model: its limits hold, the server answers meanwhile, and nothing gets out. */

const call = (name: string, args: object | string, id = `call_${name}`) => ({
  id,
  name,
  arguments: typeof args === 'string' ? args : JSON.stringify(args),
});
const finish: Answer = {
  kind: 'answer',
  calls: [call('finish', { status: 'done', summary: 'well' })],
};

interface Setting {
  readonly protocol?: 'chat' | 'responses';
  readonly maxTokens?: number;
}

const open = async (
  { protocol = 'chat', maxTokens = 1_000 }: Setting,
  ...answers: readonly Answer[]
) => {
  const provider = await startModelServer((_, number) => answers[number - 1] ?? finish);
  const model = createOpenAiModel({
    protocol,
    apiKey: 'sk-test-0123456789',
    baseURL: provider.baseURL,
  });
  const server = await startServer({ model, options: { maxTokens } });
  const { task_id: id } = await server.service.create({ description: 'a task' });
  let [slowest, asked] = [0, performance.now()];
  const asking = setInterval(() => {
    asked = performance.now();
    fetch(`${server.base}/health`)
      .then((response) => response.text())
      .then(
        () => {
          slowest = Math.max(slowest, performance.now() - asked);
        },
        () => {},
      );
  }, 50);
  await server.service.execute({ task: id, role: 'engineer', options: {} });
  const view = await untilStatus(server, id, 'complete', 'failed');
  clearInterval(asking);
  const results = server.store
    .read({ taskId: id, after: 0, limit: 5_000 })
    .filter(({ type }) => type === 'tool_end')
    .map(({ data }) => JSON.parse(data) as { tool: string; ok: boolean; output: string });
  return { view, results, provider, root: server.root, slowest };
};

/**
 * The last one takes the client of the provider seven seconds: it looks for the end of an event
 * from its begin, piece by piece.
 */
const bigAnswers = [
  ['chat', 1_000, 'failed'],
  ['chat', 100_000, 'complete'],
  ['responses', 1_000, 'failed'],
  ...(isLong ? ([['responses', 100_000, 'complete']] as const) : []),
] as const;

test.each(bigAnswers)(
  '10 MB of arguments over %s with a limit of %s tokens: %s, and no other task is delayed',
  { tags: ['slow'] },
  async (protocol, maxTokens, end) => {
    const content = 'x'.repeat(10 * 1024 * 1024);
    const big: Answer = { kind: 'answer', calls: [call('write', { path: 'big', content })] };

    const { view, slowest, root } = await open({ protocol, maxTokens }, big);

    const written = existsSync(join(root, 'big')) ? readFileSync(join(root, 'big')).length : 0;
    expect(view.status).toBe(end);
    expect(written).toBe(end === 'complete' ? content.length : 0);
    expect(slowest).toBeLessThan(10_000);
  },
);

/** A server whose answer never ends. */
const startFlood = async (event: object): Promise<string> => {
  const piece = `data: ${JSON.stringify(event)}\n\n`;
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const pour = (): void => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once('drain', pour);
    };
    pour();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
};

const text = 'x'.repeat(64 * 1024);
test.each([
  ['chat', { choices: [{ index: 0, delta: { content: text } }] }],
  [
    'responses',
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: text },
  ],
] as const)(
  'an endless answer is stopped and the failure names it, over %s',
  async (protocol, event) => {
    const model = createOpenAiModel({
      protocol,
      apiKey: 'sk-test-0123456789',
      baseURL: await startFlood(event),
    });
    const server = await startServer({ model });
    const { task_id: id } = await server.service.create({ description: 'a task' });
    await server.service.execute({ task: id, role: 'engineer', options: {} });

    const { error, usage } = await untilStatus(server, id, 'failed');

    expect(error).toMatchObject({
      message: 'the provider sent more than 8 MiB',
      facts: { kind: 'flood' },
    });
    expect(usage.model_calls).toBe(1);
  },
);

const callsAtOnce = isLong ? 1_000 : 300;

test(`${callsAtOnce} calls in one answer run in order, with one result each`, async () => {
  const calls = Array.from({ length: callsAtOnce }, (_, n) =>
    call('read', { path: `../../../etc/passwd${n}` }, `call_${n}`),
  );
  const { view, results } = await open({}, { kind: 'answer', calls });

  expect(view.status).toBe('complete');
  expect(results.filter(({ tool }) => tool === 'read')).toHaveLength(callsAtOnce);
  expect(results.filter(({ tool, ok }) => tool === 'read' && ok)).toEqual([]);
});

test('paths that lead out, unknown tools and bad JSON get an error, and nothing runs', async () => {
  const { view, results, root } = await open(
    {},
    {
      kind: 'answer',
      calls: [
        call('write', { path: '../out', content: 'x' }),
        call('read', { path: '/etc/passwd' }, 'b'),
      ],
    },
    { kind: 'answer', calls: [call('rm_rf', { path: '/' })] },
    { kind: 'answer', calls: [call('bash', '{"command": "touch bad')] },
  );

  expect(view.status).toBe('complete');
  expect(results.slice(0, -1).map(({ ok }) => ok)).toEqual([false, false, false, false]);
  expect([existsSync(join(root, '..', 'out')), existsSync(join(root, 'bad'))]).toEqual([
    false,
    false,
  ]);
});
