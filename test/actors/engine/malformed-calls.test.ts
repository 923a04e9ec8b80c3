import { expect, test } from 'vitest';
import { createOpenAiModel } from '../../../src/actors/model/openai/openai.ts';
import { crash } from '../../support/crash.ts';
import { type Answer, type SeenRequest, startModelServer } from '../../support/model-server.ts';
import { type Setting, startSystem, untilStatus } from '../../support/running.ts';

/**
 * Three strikes: what becomes of a model that makes calls which are none, through the whole system.
 */

type Call = readonly [name: string, args: string];
const calls = (...made: readonly Call[]): Answer => ({
  kind: 'answer',
  calls: made.map(([name, args], index) => ({ id: `call_${index}`, name, arguments: args })),
});
const noJson: Call = ['read', '{"path": "x'];
const noTool: Call = ['readFile', '{"path":"x"}'];
const noShape: Call = ['read', '{"file":"x"}'];
const good: Call = ['find', '{"pattern":"*"}'];
const finish = calls(['finish', '{"status":"done","summary":"well"}']);

const open = async (
  answers: (number: number, seen: SeenRequest) => Answer,
  protocol: 'chat' | 'responses' = 'chat',
) => {
  const provider = await startModelServer((seen, number) => answers(number, seen));
  const model = createOpenAiModel({
    protocol,
    apiKey: 'sk-test-0123456789',
    baseURL: provider.baseURL,
  });
  const setting: Setting = { model };
  const running = await startSystem(setting);
  const { task_id: id } = await running.service.create({ description: 'a task' });
  await running.service.execute({ task: id, role: 'engineer', options: {} });
  return { provider, running, setting, id };
};
const inTurn =
  (...answers: readonly Answer[]) =>
  (number: number) =>
    answers[number - 1] ?? finish;

test.each(['chat', 'responses'] as const)(
  'three turns of malformed calls end the attempt, over %s',
  async (protocol) => {
    const { provider, running, id } = await open(
      inTurn(calls(noJson), calls(noTool), calls(noShape, noJson)),
      protocol,
    );

    const { error, usage } = await untilStatus(running, id, 'failed', 'complete');

    expect(error).toMatchObject({
      code: 'model_failed',
      message: expect.stringMatching(
        /malformed tool calls in 3 turns in a row: the arguments of read are not valid JSON/,
      ),
      facts: { kind: 'malformed_calls', problem: expect.stringContaining('not valid JSON') },
    });
    expect(provider.requests).toHaveLength(3);
    expect(usage).toMatchObject({ turns: 3, tool_calls: 4 });
  },
);

test.each<[string, readonly Answer[]]>([
  [
    'a good call between them',
    [calls(noJson), calls(noTool), calls(good), calls(noShape), calls(noJson)],
  ],
  [
    'a good call beside one of them',
    [calls(noJson), calls(noTool), calls(noShape, good), calls(noJson), calls(noTool)],
  ],
  [
    'a call that only fails',
    [calls(noJson), calls(noTool), calls(['read', '{"path":"none"}']), calls(noJson)],
  ],
])('with %s the model goes on', async (_, answers) => {
  const { running, id } = await open(inTurn(...answers));

  expect(await untilStatus(running, id, 'failed', 'complete')).toMatchObject({
    status: 'complete',
    result: 'well',
  });
});

test('an answer without a call between them does not begin the count anew', async () => {
  const { running, id } = await open(
    inTurn(calls(noJson), { kind: 'answer', text: 'hm' }, calls(noTool), calls(noShape)),
  );

  expect((await untilStatus(running, id, 'failed', 'complete')).error).toMatchObject({
    facts: { kind: 'malformed_calls' },
  });
});

test('the count survives a crash', async () => {
  let asked: (() => void) | undefined;
  const third = new Promise<void>((resolve) => {
    asked = resolve;
  });
  let crashed = false;
  const { running, setting, id } = await open((number) => {
    if (number < 3) return calls(noTool);
    asked?.();
    return crashed ? calls(noShape) : { kind: 'silence' };
  });
  await third;
  crashed = true;
  const next = await startSystem(await crash(running, setting));

  expect(await untilStatus(next, id, 'failed', 'complete')).toMatchObject({
    error: { facts: { kind: 'malformed_calls' } },
    usage: { turns: 3 },
  });
});
