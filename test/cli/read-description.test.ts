import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { editText, splitText } from '../../src/cli/tasks/read-input.ts';
import { openProject } from '../support/cli.ts';
import { temporaryFolder } from '../support/temporary.ts';

test('create reads standard input or a file; the first line is the title, and only the id is printed', async () => {
  const { agent, root, shell } = openProject();
  writeFileSync(join(root, 'task.md'), 'From a file\n\nwith a body\n');

  const piped = await shell("printf 'From a pipe\\n\\nwith a body\\n' | $AGENT create -");
  const named = await shell('$AGENT create -F task.md');
  const tasks = JSON.parse((await agent('list', '--json')).out);

  for (const { out } of [piped, named]) expect(out).toMatch(/^bd-\w+\n$/);
  expect(tasks).toMatchObject([
    { title: 'From a pipe', description: 'From a pipe\n\nwith a body' },
    { title: 'From a file', description: 'From a file\n\nwith a body' },
  ]);
});

test('a first line without a word is no title: the name of the file is, or the next line', async () => {
  const { agent, root, shell } = openProject();
  writeFileSync(join(root, 'package.json'), '{\n  "name": "x"\n}\n');

  await shell('$AGENT create -F package.json');
  await shell("printf '%s\\n' '---' 'Fix it' | $AGENT create -");
  await shell('$AGENT create -F package.json --title Mine');

  const tasks: { title: string }[] = JSON.parse((await agent('list', '--json')).out);
  expect(tasks.map(({ title }) => title)).toEqual(['package.json', 'Fix it', 'Mine']);
});

test.each([
  ["printf ' \\n' | $AGENT create -", 'the text is empty, so nothing was done'],
  ['$AGENT create -F missing.md', 'missing.md cannot be read'],
  ['echo x > x; $AGENT create y -F x', 'give the text or --file, not both'],
  ['$AGENT create < /dev/null', 'create needs <description>'],
  ['$AGENT edit bd-x < /dev/null', 'edit needs a change'],
])('%s ends with 2 and creates nothing', async (line, message) => {
  const { agent, shell } = openProject();

  expect(await shell(line)).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining(message),
  });
  expect(JSON.parse((await agent('list', '--json')).out)).toEqual([]);
});

/** An editor that runs a line of shell on the file. */
const editor = (line: string) => {
  const file = join(temporaryFolder(), 'editor');
  writeFileSync(file, `#!/bin/sh\n${line}\n`);
  chmodSync(file, 0o755);
  return { PATH: process.env['PATH'], EDITOR: file };
};

test('an editor gets the text and advice below a line, which is cut off', () => {
  const env = editor('grep -q "first line is its title" "$1" && sed -i "1s/.*/Title/" "$1"');

  expect(editText('before\n\nbody', env)).toBe('Title\n\nbody');
});

test.each([
  ['echo > "$1"', 'the text is empty, so nothing was done'],
  ['exit 3', 'ended with 3, so nothing was done'],
])('an editor that runs %s changes nothing', (line, message) => {
  expect(() => editText('before', editor(line))).toThrow(message);
});

test('a text is its first line and the rest', () => {
  expect(splitText('one\n\ntwo\nthree')).toEqual({ title: 'one', rest: 'two\nthree' });
});
