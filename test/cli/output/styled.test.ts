import { expect, test } from 'vitest';
import { createIo } from '../../../src/cli/output/io.ts';
import { styled } from '../../../src/cli/output/styled.ts';

const printed = (isTTY: boolean, env: Record<string, string>): string => {
  let text = '';
  const write = (more: string): void => {
    text += more;
  };
  const io = createIo({ isTTY, columns: 80, write }, { isTTY, write: () => {} }, env);
  io.out(['a ', styled('red', 'b')]);
  return text;
};
const coloured = 'a \u001b[31mb\u001b[0m\n';
const plain = 'a b\n';

test.each([
  ['a terminal', true, {}, coloured],
  ['a pipe', false, {}, plain],
  ['NO_COLOR', true, { NO_COLOR: '1' }, plain],
  ['an empty NO_COLOR', true, { NO_COLOR: '' }, coloured],
  ['CLICOLOR=0', true, { CLICOLOR: '0' }, plain],
  ['a pipe and CLICOLOR_FORCE', false, { CLICOLOR_FORCE: '1' }, coloured],
  ['CLICOLOR_FORCE=0', false, { CLICOLOR_FORCE: '0' }, plain],
  ['NO_COLOR and CLICOLOR_FORCE', true, { NO_COLOR: '1', CLICOLOR_FORCE: '1' }, plain],
  ['a dumb terminal', true, { TERM: 'dumb' }, plain],
])('%s decides on colour', (_, isTTY, env, text) => {
  expect(printed(isTTY, env as Record<string, string>)).toBe(text);
});

test('no words can bring a colour or a control', () => {
  let text = '';
  const write = (more: string): void => {
    text += more;
  };
  const io = createIo({ isTTY: true, columns: 80, write }, { isTTY: true, write: () => {} });

  io.out(['\u001b[31mx\u001b]0;title\u0007', styled('green', '\u0007y\u202e')]);

  expect(text).toBe('x\u001b[32my\u001b[0m\n');
});
