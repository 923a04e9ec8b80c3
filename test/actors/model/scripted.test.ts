import { expect, test } from 'vitest';
import type { ModelMessage } from '../../../src/actors/model/port.ts';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import { aRequest, ask, describeModel } from '../../contracts/model.ts';

const read = { tool: 'read', arguments: { path: 'x' } };

describeModel('scripted', async () =>
  createScriptedModel(
    parseScript({
      scripts: [
        { title: 'Another', turns: [{ say: 'I wrote it.' }] },
        { turns: [{ say: 'I read it.', calls: [read] }] },
      ],
    }),
  ),
);

const answered: ModelMessage = {
  role: 'assistant',
  text: '',
  calls: [{ id: 'c', tool: 'bash', arguments: '{}' }],
};
const result = (ok: boolean, text: string): ModelMessage => ({
  role: 'tool',
  callId: 'c',
  tool: 'bash',
  text,
  ok,
});
const user: ModelMessage = { role: 'user', text: 'Do it.' };

const script = parseScript({
  scripts: [
    { role: 'tester', turns: [{ say: 'for the tester' }] },
    {
      title: 'sum',
      turns: [
        { say: 'first' },
        { say: 'good: {{last_output}}', otherwise: { say: 'bad: {{last_output}}' } },
      ],
    },
  ],
});

test.each([
  ['the role', { role: 'tester', title: 'any' }, [user], 'for the tester'],
  ['the title', { role: 'engineer', title: 'Mend the sum' }, [user], 'first'],
  [
    'success of the turn before',
    { role: 'engineer', title: 'sum' },
    [user, answered, result(true, 'all ok')],
    'good: all ok',
  ],
  [
    'failure of the turn before',
    { role: 'engineer', title: 'sum' },
    [user, answered, result(false, 'exit 1')],
    'bad: exit 1',
  ],
  [
    'the answer to a question',
    { role: 'engineer', title: 'sum' },
    [
      user,
      answered,
      { role: 'tool', callId: 'c', tool: 'ask', text: 'It was sent.', ok: true },
      { role: 'user', text: 'A person answers:\n\n80\n\n81' },
    ],
    'good: 80\n\n81',
  ],
] satisfies readonly (readonly [string, object, readonly ModelMessage[], string])[])(
  'it selects a script by %s',
  async (_, asker, messages, text) => {
    const request = aRequest({ asker: { taskId: 'bd-a', attempt: 1, ...asker }, messages });

    expect((await ask(createScriptedModel(script), request)).at(-1)).toMatchObject({ text });
  },
);

test('without a script it lists files and says that no model was called', async () => {
  const model = createScriptedModel(parseScript({ scripts: [] }));

  const first = (await ask(model)).at(-1);
  const second = (await ask(model, aRequest({ messages: [user, answered, result(true, '')] }))).at(
    -1,
  );

  expect(first).toMatchObject({ calls: [{ tool: 'find' }] });
  expect(JSON.stringify(second)).toContain('no language model was called');
});

test('the last 600 characters of the last output are inserted into arguments at any depth', async () => {
  const edits = [{ newText: 'was: {{last_output}}' }];
  const model = createScriptedModel(
    parseScript({
      scripts: [{ turns: [{}, { calls: [{ tool: 'edit', arguments: { edits, count: 1 } }] }] }],
    }),
  );
  const messages = [user, answered, result(true, `${'a'.repeat(10)}${'b'.repeat(600)}`)];

  const last = (await ask(model, aRequest({ messages }))).at(-1);

  const [call] = last?.type === 'answered' ? last.calls : [];
  expect(JSON.parse(call?.arguments ?? '')).toEqual({
    edits: [{ newText: `was: ${'b'.repeat(600)}` }],
    count: 1,
  });
});

test('a script that has ended finishes as done, at no cost', async () => {
  const model = createScriptedModel(parseScript({ scripts: [{ turns: [{ say: 'one' }] }] }));

  expect(
    (await ask(model, aRequest({ messages: [user, answered, result(true, '')] }))).at(-1),
  ).toMatchObject({
    calls: [{ tool: 'finish', arguments: expect.stringContaining('"status":"done"') }],
    usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0 },
  });
});

test('a delayed turn can be cancelled', async () => {
  const model = createScriptedModel(parseScript({ turn_ms: 600_000, scripts: [] }));
  const stop = new AbortController();
  setImmediate(() => stop.abort());

  expect(await ask(model, aRequest(), stop.signal)).toMatchObject([
    {
      type: 'failed',
      failure: { code: 'model_failed', facts: { kind: 'cancelled' }, retryable: false },
    },
  ]);
});
