import fc from 'fast-check';
import { expect, test } from 'vitest';
import { linesOfJson } from '../../src/cli/config/json-lines.ts';
import { seed } from '../support/random.ts';

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

test.each([
  ['{\n  "a": 1,\n}', 3, 'expected a key, but found "}"'],
  ['{\n  "a" 1\n}', 2, 'expected :, but found "1"'],
  ['{ "a": 1\n  "b": 2 }', 2, 'expected , or }, but found "\\"b\\":"'],
  ["{\n\n'a': 1}", 3, 'expected a key or }, but found "\'a\':"'],
  ['[1, tru]', 1, 'expected a value, but found "tru]"'],
  ['{\n// a comment\n}', 2, 'expected a key or }, but found "//"'],
  ['{"a": [1\n', 2, 'expected , or ], but the text ends'],
  ['{}\n{}', 2, 'expected the end, but found "{}"'],
  ['[01]', 1, 'expected a value or ], but found "01]"'],
  ['', 1, 'expected a value, but the text ends'],
])('%j is not JSON in line %i', (text, line, problem) => {
  expect(isJson(text)).toBe(false);
  expect(linesOfJson(text).fault).toEqual({ line, problem });
});

test('the lines of values are known by their paths', () => {
  const { of, fault } = linesOfJson('{\n"a": {"b":\n 1},\n"c": [1,\n{"d": 2}]}');

  expect(fault).toBeNull();
  expect(of.get('["a","b"]')).toBe(3);
  expect(of.get('["c",1,"d"]')).toBe(5);
});

test('it takes and refuses the same texts as JSON.parse', () => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\u00e9"',
    '1',
    '-0.5e3',
    'true',
    ' ',
    '"',
    '\\',
    'x',
  ];
  const soup = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((all) => all.join(''));
  const near = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '"', ' '))
    .map(([text, at, added]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + added + text.slice(place + 1);
    });

  fc.assert(
    fc.property(fc.oneof(soup, near, fc.json()), (text) => {
      expect(linesOfJson(text).fault === null).toBe(isJson(text));
    }),
    { seed },
  );
});
