import { expect, test } from 'vitest';
import { textCallsIn } from '../../../src/actors/model/openai/openai-chat.ts';

const call = (name: string, args: object = {}, key = 'arguments') =>
  JSON.stringify({ name, [key]: args });

test.each<[string, string, string, readonly string[]]>([
  [
    'several, with words around',
    `a <tool_call>${call('x')}</tool_call> b <tool_call>${call('y')}</tool_call> c`,
    'a  b  c',
    ['x', 'y'],
  ],
  ['one that is not closed', `<tool_call>${call('x')}`, '', ['x']],
  ['one with parameters', `<tool_call>${call('x', {}, 'parameters')}</tool_call>`, '', ['x']],
  ['a fenced block that is all', `\`\`\`json\n${call('x')}\n\`\`\``, '', ['x']],
  [
    'a fenced block among words',
    `See:\n\`\`\`json\n${call('x')}\n\`\`\``,
    `See:\n\`\`\`json\n${call('x')}\n\`\`\``,
    [],
  ],
  [
    'what is no JSON',
    '<tool_call>{"name": "x"</tool_call>',
    '<tool_call>{"name": "x"</tool_call>',
    [],
  ],
  [
    'what says more than a call',
    '<tool_call>{"name":"x","arguments":{},"a":1}</tool_call>',
    '<tool_call>{"name":"x","arguments":{},"a":1}</tool_call>',
    [],
  ],
  ['arguments as text', '<tool_call>{"name":"x","arguments":"{\\"a\\":1}"}</tool_call>', '', ['x']],
  [
    'an end inside an argument',
    `<tool_call>${call('x', { content: 'a </tool_call> b' })}</tool_call>`,
    '',
    ['x'],
  ],
  ['one on each line', `<tool_call>\n${call('x')}\n${call('y')}\n</tool_call>`, '', ['x', 'y']],
  ['words', 'nothing to call', 'nothing to call', []],
])('%s', (_, text, rest, tools) => {
  const found = textCallsIn(text);

  expect(found.text).toBe(rest);
  expect(found.calls.map(({ tool }) => tool)).toEqual(tools);
});

test('many opening tags take linear time', () => {
  const began = performance.now();

  expect(textCallsIn('<tool_call>'.repeat(200_000)).calls).toEqual([]);
  expect(performance.now() - began).toBeLessThan(10_000);
});
