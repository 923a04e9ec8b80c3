import { expect, test } from 'vitest';
import { openProject } from '../support/cli.ts';

test('a command that is spelled wrongly is asked about on a terminal, and runs after yes', async () => {
  const { agent, typing } = openProject();
  const id = (await agent('create', 'mend it')).out.trim();

  const no = await typing([''], 'shwo', id);
  const yes = await typing(['y'], 'shwo', id);
  const noRun = await typing(['n'], 'enginer', 'mend "it"', '--model', 'scripted');
  const { out } = await agent('list', '--json');

  expect(no).toMatchObject({ code: 2, err: expect.stringContaining('did you mean: agent show?') });
  expect(no.out).toBe(`there is no command shwo; run this? agent show ${id} [y/N] `);
  expect(yes).toMatchObject({ code: 0, out: expect.stringContaining('mend it') });
  expect(noRun).toMatchObject({ code: 2, err: expect.stringContaining('unknown role "enginer"') });
  expect(noRun.out).toContain('run this? agent engineer "mend \\"it\\"" --model scripted [y/N]');
  expect(JSON.parse(out)).toHaveLength(1);
});

test.each([
  [['shwo', 'bd-a'], 'did you mean: agent show?'],
  [['enginer', 'mend it'], 'did you mean: agent engineer?'],
  [['sho\u001b[31mw', 'bd-a'], 'unknown role'],
])('in a pipe %j is refused with what was meant', async (words, message) => {
  const { agent, typing } = openProject();

  const piped = await agent(...words);
  const json = await typing(['y'], ...words, '--json');

  expect(piped).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) });
  expect(JSON.parse(json.out).error.code).toMatch(/^(usage|role_unknown)$/);
});

test('nothing is asked about a command that is like no other, or in the value of a flag', async () => {
  const { typing } = openProject();

  for (const words of [
    ['zzzzzz', 'x'],
    ['--project', 'shwo', 'shwo', 'bd-a'],
    ['help', 'shwo'],
  ])
    expect(await typing(['y'], ...words)).toMatchObject({ code: 2, out: '' });
});

test('a text that only names tasks asks on a terminal, and starts nothing in a pipe', async () => {
  const { agent, typing } = openProject();
  const [a, b] = [(await agent('create', 'a')).out.trim(), (await agent('create', 'b')).out.trim()];
  const count = async () => JSON.parse((await agent('list', '--json')).out).length;

  const two = await agent('engineer', `${a} ${b}`);
  const shown = await agent('tester', ` show\n${a}`);
  const json = await typing(['y'], 'engineer', `${a} ${b}`, '--json');
  const no = await typing([''], 'engineer', `show ${a}`);
  const before = await count();
  const yes = await typing(['yes'], 'engineer', `see ${a}`, '--async');
  const text = await agent('engineer', `mend ${a} first`, '--async');

  expect(two).toMatchObject({ code: 2, out: '' });
  expect(two.err).toContain(`did you mean: agent run ${a} ${b} --role engineer`);
  expect(shown.err).toContain(`did you mean: agent tester ${a}`);
  expect(json.code).toBe(2);
  expect(no.out).toBe(`create a task "show ${a}" and run the engineer on it? [y/N] `);
  expect(no.code).toBe(2);
  expect(before).toBe(2);
  expect(yes.code).toBe(0);
  expect(text.code).toBe(0);
  expect(await count()).toBe(4);
});
