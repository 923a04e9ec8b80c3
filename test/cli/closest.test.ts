import fc from 'fast-check';
import { expect, test } from 'vitest';
import { closest, editDistance } from '../../src/cli/output/closest.ts';

const commands = [
  'create',
  'engineer',
  'tester',
  'show',
  'list',
  'close',
  'cancel',
  'wait',
  'dep',
  'doctor',
  'server',
];

test.each([
  ['lst', 'list'],
  ['shwo', 'show'],
  ['enginer', 'engineer'],
  ['cacnel', 'cancel'],
  ['creat', 'create'],
  ['Doctor', 'doctor'],
  ['frobnicate', null],
  ['', null],
  ['x', null],
])('%j was probably meant as %j', (word, meant) => {
  expect(closest(word, commands)).toBe(meant);
});

test('the distance counts one per change', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (one, other) => {
      expect(editDistance(one, other)).toBe(editDistance(other, one));
      expect(editDistance(one, one)).toBe(0);
      expect(editDistance(one, `${one}x`)).toBe(1);
    }),
  );
});
