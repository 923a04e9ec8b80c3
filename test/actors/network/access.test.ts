import { expect, test } from 'vitest';
import { type NetworkAccess, narrowAccess } from '../../../src/actors/network/access.ts';

test.each<[NetworkAccess, NetworkAccess, NetworkAccess]>([
  [true, true, true],
  [false, ['a.org'], false],
  [true, ['a.org'], ['a.org']],
  [['a.org', 'b.org'], ['b.org', 'c.org'], ['b.org']],
  [['*.x.a.org', 'a.org'], ['*.a.org'], ['*.x.a.org']],
  [['b.a.org'], ['*.a.org'], ['b.a.org']],
  [['evil-a.org', 'a.org.evil.org'], ['*.a.org'], []],
  [['*'], ['a.org', '*.b.org'], ['a.org', '*.b.org']],
  // `*` is every public host, and no other.
  [['*'], ['10.0.0.7', '10.0.0.0/8', 'localhost', '127.0.0.1', '8.8.8.8'], ['8.8.8.8']],
  [['10.0.0.7'], ['10.0.0.0/8'], ['10.0.0.7']],
  [['10.0.0.0/8'], ['10.0.0.0/16'], []],
])('%o within %o is %o', (one, other, both) => {
  expect(narrowAccess(one, other)).toEqual(both);
  expect(new Set([narrowAccess(other, one)].flat())).toEqual(new Set([both].flat()));
});
