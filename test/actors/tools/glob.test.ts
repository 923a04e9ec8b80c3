import { expect, test } from 'vitest';
import { expandBraces, findTests } from '../../../src/actors/tools/glob.ts';

test.each([
  ['*.ts', ['*.ts']],
  ['*.{ts,tsx}', ['*.ts', '*.tsx']],
  ['{a,b}.{c,d}', ['a.c', 'a.d', 'b.c', 'b.d']],
  ['{a,{b,c}}', ['a', 'b', 'a', 'c']],
  ['{$&}', ['$&']],
  ['{open', ['{open']],
])('braces of %s', (pattern, expected) => {
  expect(expandBraces(pattern)).toEqual(expected);
});

test('a flood of braces and stars stays small', () => {
  expect(expandBraces('{a,b}'.repeat(40)).length).toBeLessThanOrEqual(32);
  expect(findTests('**/'.repeat(40)).length).toBeLessThanOrEqual(32 * 3);
});
