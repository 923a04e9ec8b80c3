import { expect, test } from 'vitest';
import { textWidth, wrapAfter } from '../../src/cli/output/wrap.ts';
import { openProject } from '../support/cli.ts';

test('create on a terminal says how a task without a role gets one', async () => {
  const { agent, onTerminal } = openProject();

  const bare = await onTerminal('create', 'x');
  const id = bare.out.trim();

  expect(bare.err).toContain(`it has no role: 'agent run' skips it unless you give --role`);
  const [, note = ''] = bare.err.split('note: ');
  for (const line of note.split('\n')) expect(line.length).toBeLessThanOrEqual(74);
  expect(bare.err).toContain(`agent engineer ${id}`);
  expect((await onTerminal('create', 'x', '--role', 'tester')).err).not.toContain('no role');
  expect((await onTerminal('create', 'x', '--json')).err).not.toContain('no role');
  expect((await agent('create', 'x')).err).not.toContain('no role');
});

test('explain breaks its lines at the width of the terminal, and nowhere in a pipe', async () => {
  const { agent, onTerminal } = openProject();
  const id = (await agent('create', 'x')).out.trim();

  const shown = await onTerminal('explain', id);
  const piped = await agent('explain', id);

  for (const line of shown.out.split('\n')) expect(textWidth(line)).toBeLessThanOrEqual(80);
  expect(shown.out.replace(/\s+/g, '')).toBe(piped.out.replace(/\s+/g, ''));
});

test.each([
  ['a bb ccc dddddddddddd eeee', '> a bb ccc\n  dddddddddddd eeee'],
  ['', '> '],
  ['in /home/amy/projects/basket now', '> in\n/home/amy/projects/basket\n  now'],
  ['to go on: agent retry bd-a1b2 --async', '> to go on:\nagent retry bd-a1b2 --async'],
])('%j is broken between words; a path and a command stay whole', (text, shown) => {
  expect(wrapAfter('> ', text, 22)).toBe(shown);
  expect(wrapAfter('> ', text, null)).toBe(`> ${text}`);
});

test('logs shows one attempt, and says when there is none of that number', async () => {
  const { agent } = openProject();
  const id = (await agent('create', 'x')).out.trim();
  await agent('engineer', id, '--model', 'scripted');
  await agent('reopen', id);
  await agent('engineer', id, '--model', 'scripted');

  const attemptsIn = (out: string) => [
    ...new Set(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).attempt),
    ),
  ];

  expect(attemptsIn((await agent('logs', id, '--attempt', '2', '--json')).out)).toEqual([2]);
  expect(attemptsIn((await agent('logs', id, '--json')).out)).toContain(1);
  expect(await agent('logs', id, '--attempt', '3')).toMatchObject({
    code: 1,
    err: expect.stringContaining(`${id} has no attempt 3`),
  });
  for (const wrong of ['0', '-1', '1.5', 'NaN', '1e99'])
    expect((await agent('logs', id, '--attempt', wrong)).code).toBe(2);
});
