import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { linkPlaces, relativeInside } from '../../../src/actors/files/link-places.ts';
import { temporaryFolder } from '../../support/temporary.ts';

test.each([
  ['/p/a/b', 'a/b'],
  ['/p', ''],
  ['/p/..a', '..a'],
  ['/p/..a/b', '..a/b'],
  ['/', null],
  ['/a', null],
  ['/a/b', null],
  ['/pa', null],
])('%s is inside /p as %j', (path, inside) => {
  expect(relativeInside('/p', path)).toBe(inside);
});

test('a link leads to places inside, also with two dots before their name, and to none outside', () => {
  const outer = temporaryFolder();
  const top = join(outer, 'top');
  mkdirSync(top);
  symlinkSync('..settings', join(top, '.envrc'));
  symlinkSync('../settings', join(top, '.mcp.json'));
  symlinkSync('../../settings', join(top, '.npmrc'));

  expect(['.envrc', '.mcp.json', '.npmrc'].map((link) => linkPlaces(top, link))).toEqual([
    ['..settings'],
    [],
    [],
  ]);
});
