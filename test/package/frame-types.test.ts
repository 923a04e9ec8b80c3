import { expect, test } from 'vitest';
import { unknownKeys, wrongTypes } from '../../scripts/reference/events-table.mjs';
import { bash, finish, startServer, untilStatus } from '../support/running.ts';
import { readFrames } from '../support/sse.ts';

const ask = { say: 'I look.', calls: [{ tool: 'ask', arguments: { question: 'Which port?' } }] };
const fails = {
  say: '',
  calls: [{ tool: 'finish', arguments: { status: 'failed', summary: 'no' } }],
};

test('the data of frames has the types that the client says', async () => {
  const server = await startServer({ turns: [ask, bash('echo out'), finish('done')] });
  const failing = await startServer({ turns: [fails], options: { maxRetries: 0 } });
  const run = async ({ service }: Pick<typeof server, 'service'>) => {
    const { task_id } = await service.create({ description: 'One' });
    await service.execute({ task: task_id, role: 'engineer', options: {} });
    return task_id;
  };
  const answer = (input_id: unknown) => ({ task_id: asks, attempt: 1, input_id, text: '8080' });
  const [asks, failed] = [await run(server), await run(failing)];
  const seen = await Promise.all([
    readFrames(`${server.base}/stream/${asks}?after=0`, server.headers, ({ body, event }) => {
      const { input_id } = body.data;
      if (event === 'input_required')
        void server.post({ jsonrpc: '2.0', id: 1, method: 'respond', params: answer(input_id) });
      return false;
    }),
    untilStatus(failing, failed, 'failed').then(() =>
      readFrames(`${failing.base}/stream/${failed}?after=0`, failing.headers),
    ),
  ]);
  const frames = seen.flat().map(({ body }) => body);

  expect(frames.flatMap(wrongTypes)).toEqual([]);
  expect(frames.flatMap(unknownKeys).filter((key) => key !== 'connected')).toEqual([]);
  expect([...new Set(frames.map(({ type }) => type))]).toEqual(
    expect.arrayContaining([
      'snapshot',
      'tool_end',
      'usage',
      'input_required',
      'failed',
      'completed',
    ]),
  );
});
