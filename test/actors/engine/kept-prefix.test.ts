import { expect, test, vi } from 'vitest';
import { createAiSdkModel } from '../../../src/actors/model/ai-sdk.ts';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { crash } from '../../support/crash.ts';
import { type Answer, startModelServer } from '../../support/model-server.ts';
import { startSystem, untilStatus } from '../../support/running.ts';

const turns = 30;
const cutAt = 15;

/** Two calls at once, others in each turn. */
const looks = (turn: number): Answer => ({
  kind: 'answer',
  text: `I look at ${turn}.`,
  calls: ['a', 'b'].map((name) => ({
    id: `call_${turn}_${name}`,
    name: 'find',
    arguments: JSON.stringify({ pattern: `${name}${turn}*` }),
  })),
});
const finish: Answer = {
  kind: 'answer',
  calls: [{ id: 'call_end', name: 'finish', arguments: '{"status":"done","summary":"well"}' }],
};

/** What a provider keeps, in the order in which it reads; marks of what to keep are no part of it. */
const readBy = (body: Readonly<Record<string, unknown>>): string =>
  [body['tools'], body['system'], body['messages']]
    .map((part) => JSON.stringify(part) ?? '')
    .join('\n')
    .replaceAll(',"cache_control":{"type":"ephemeral"}', '');

test.each(['anthropic', 'openai'] as const)(
  'each of 30 requests to %s begins as the one before, with parallel calls and over a restart',
  async (kind) => {
    let isBack = false;
    let turn = 0;
    const provider = await startModelServer(() => {
      if (turn === cutAt && !isBack) return { kind: 'silence' };
      turn += 1;
      return turn < turns ? looks(turn) : finish;
    });
    const at = { apiKey: 'sk-test-0123456789', baseURL: provider.baseURL };
    const model =
      kind === 'anthropic'
        ? createAiSdkModel({ ...at, type: 'anthropic' })
        : createOpenAiModel({ ...at, protocol: 'chat' });
    const setting = {
      model,
      options: { defaultModel: 'a-model', maxTurns: 50, maxTokensTotal: null },
    };
    const running = await startSystem(setting);
    const { task_id: id } = await running.service.create({ description: 'a task' });
    await running.service.execute({ task: id, role: 'engineer', options: {} });
    await vi.waitFor(() => expect(provider.requests).toHaveLength(cutAt + 1), { timeout: 20_000 });
    isBack = true;
    const next = await startSystem(await crash(running, setting));

    const ended = await untilStatus(next, id, 'complete', 'failed');

    const read = provider.requests.map(({ body }) => readBy(body));
    expect(ended.error).toBeUndefined();
    expect(read).toHaveLength(turns + 1);
    // But for the bracket that ends the list of messages.
    for (const [number, text] of read.entries())
      expect((read[number + 1] ?? text).startsWith(text.slice(0, -1)), `${number}`).toBe(true);
  },
);
