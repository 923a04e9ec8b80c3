import { expect, test } from 'vitest';
import { codeParts } from '../../../web/model/code-colours.ts';
import { hostileStrings } from '../hostile-strings.ts';

const coloured = (path: string, line: string): string =>
  codeParts(path, line)
    .map(({ text, tone }) => (tone === '' ? text : `<${tone} ${text}>`))
    .join('');

test.each([
  [
    'a.js',
    "import { a } from './a.js'; // b",
    "<tone-rev import> { a } <tone-rev from> <tone-done './a.js'>; <quiet // b>",
  ],
  ['a.ts', 'const url = `//${host}`;', '<tone-rev const> url = <tone-done `//${host}`>;'],
  ['a.ts', ' * for a reader', '<quiet  * for a reader>'],
  ['a.ts', 'a /* in */ + "\\"" * b', 'a <quiet /* in */> + <tone-done "\\""> * b'],
  ['a.ts', 'before_import.format', 'before_import.format'],
  ['b.py', 'def a(): # "b"', '<tone-rev def> a(): <quiet # "b">'],
  ['c.sh', 'echo "${#list}" $#', 'echo <tone-done "${#list}"> $#'],
  ['Makefile', '# all', '<quiet # all>'],
  ['README.md', "don't import this", "don't import this"],
  ['a.js', `"${'x'.repeat(400)}"`, `"${'x'.repeat(400)}"`],
])('the line of %s is coloured by its language: %s', (path, line, expected) => {
  expect(coloured(path, line)).toBe(expected);
});

test('no character is lost or added, whatever the line', () => {
  for (const path of ['a.js', 'a.py', 'a.md'])
    for (const line of [...hostileStrings, '`"\'`"\'#//', '\\'.repeat(300), "'\\".repeat(190)])
      expect(
        codeParts(path, line)
          .map(({ text }) => text)
          .join(''),
      ).toBe(line);
});
