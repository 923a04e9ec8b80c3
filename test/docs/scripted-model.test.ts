import { expect, test } from 'vitest';
import { parseScript } from '../../src/actors/model/script.ts';
import { textOf } from './pages.ts';

const [, page = ''] =
  /^## The scripted model\n([\s\S]*?)^## /m.exec(textOf('docs/guides/assistants-and-models.md')) ??
  [];
const [script = '', answer = ''] = [...page.matchAll(/```json5\n([\s\S]*?)```/g)].map(
  ([, code = '']) => code,
);

test('the script and the answer of the guide are what the scripted model takes', () => {
  const parsed = parseScript(JSON.parse(script));
  const turns = [{ calls: [JSON.parse(answer)] }];

  expect(parsed.scripts).toMatchObject([
    { role: 'engineer', title: 'basket', turns: [{}, { otherwise: { say: 'They fail.' } }] },
    { role: 'tester', turns: [] },
  ]);
  expect(() => parseScript({ scripts: [{ turns }] })).not.toThrow();
});

test('the table of the guide names every key', () => {
  const named = [...page.matchAll(/^\| `([\w.[\]]+)` \|/gm)].map(([, key]) => key);

  expect(named).toEqual([
    'turn_ms',
    'scripts',
    'scripts[].role',
    'scripts[].title',
    'scripts[].turns',
    'turns[].say',
    'turns[].calls',
    'turns[].otherwise',
  ]);
});
