import { expect, test } from 'vitest';
import type { Message } from '../../../src/actors/model/port.ts';
import { parseScript } from '../../../src/actors/model/script.ts';
import { createScriptedModel } from '../../../src/actors/model/scripted.ts';
import { aRequest, ask, describeModel } from '../../contracts/model.ts';

const read = { tool: 'read', arguments: { path: 'x' } };

describeModel('scripted', async () =>
  createScriptedModel(parseScript({ scripts: [{ turns: [{ say: 'I read it.', calls: [read] }] }] })),
);

const answered: Message = { role: 'assistant', text: '', calls: [{ id: 'c', tool: 'bash', arguments: '{}' }] };
const result = (ok: boolean, text: string): Message => ({ role: 'tool', callId: 'c', tool: 'bash', text, ok });
const user: Message = { role: 'user', text: 'Do it.' };

const script = parseScript({
  scripts: [
    { role: 'tester', turns: [{ say: 'for the tester' }] },
    {
      title: 'sum',
      turns: [{ say: 'first' }, { say: 'good: {{last_output}}', otherwise: { say: 'bad: {{last_output}}' } }],
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
])('it chooses by %s', async (_, asker, messages, text) => {
  const request = aRequest({ asker: { taskId: 'bd-a', attempt: 1, ...asker }, messages });

  expect((await ask(createScriptedModel(script), request)).at(-1)).toMatchObject({ text });
});

test('without a script it looks around and says that no model was called', async () => {
  const model = createScriptedModel(parseScript({ scripts: [] }));

  const first = (await ask(model)).at(-1);
  const second = (await ask(model, aRequest({ messages: [user, answered, result(true, '')] }))).at(-1);

  expect(first).toMatchObject({ calls: [{ tool: 'find' }] });
  expect(JSON.stringify(second)).toContain('no language model was called');
});

test('a script that is none is refused with the path of what is wrong', () => {
  expect(() => parseScript({ scripts: [{ turns: [{ calls: [{ tool: 7 }] }] }] })).toThrow(
    /scripts\.0\.turns\.0\.calls\.0\.tool/,
  );
});
