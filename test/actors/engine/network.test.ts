import { expect, test } from 'vitest';
import { type NetworkUser, networkAccess } from '../../../src/actors/engine/attempts/settings.ts';
import type { NetworkAccess } from '../../../src/actors/network/access.ts';
import { bareSettings } from '../../support/running.ts';

const list = ['a.example'];
const other = ['b.example'];
const everywhere = ['*'];

interface Given {
  readonly all?: NetworkAccess;
  readonly role?: NetworkAccess | null;
  readonly revoked?: boolean;
  readonly allow?: boolean;
  readonly run?: boolean;
  readonly setup?: NetworkAccess;
}

const decide = (
  { all = false, role = null, revoked = false, allow = false, run, setup = list }: Given,
  user: NetworkUser,
): NetworkAccess => {
  const settings = bareSettings(
    { network: role, isNetworkRevoked: revoked },
    {
      network: all,
      allowTaskNetwork: allow,
      setup: { commands: ['npm ci'], network: setup, timeoutMs: 1_000, cache: [] },
    },
  );
  const options = run === undefined ? {} : { network: run };
  return networkAccess(settings, { role: 'engineer', options }, user);
};

test.each<readonly [Given, NetworkAccess]>([
  [{}, false],
  [{ all: true }, true],
  [{ all: list }, list],
  [{ all: list, role: false }, false],
  [{ all: list, role: other }, other],
  [{ all: false, role: true }, true],
  [{ all: true, role: list }, list],
  [{ all: true, role: true, revoked: true }, false],
  [{ all: true, run: false }, false],
  [{ role: list, run: false }, false],
  [{ run: true }, false],
  [{ run: true, allow: true }, true],
  [{ role: list, run: true, allow: true }, true],
])('commands with %j reach %j', (given, access) => {
  expect(decide(given, { kind: 'commands' })).toEqual(access);
});

test.each<readonly [Given, NetworkAccess]>([
  [{}, everywhere],
  [{ all: true }, true],
  [{ all: list }, list],
  [{ all: list, role: other }, other],
  [{ all: list, role: true }, true],
  [{ role: true }, true],
  [{ all: true, role: list }, list],
  [{ role: false }, everywhere],
  [{ all: list, role: false }, list],
  [{ all: true, role: false }, everywhere],
  [{ all: true, revoked: true }, everywhere],
  [{ role: true, revoked: true }, everywhere],
  [{ all: true, role: list, revoked: true }, list],
  [{ run: true, allow: true }, everywhere],
  [{ all: list, run: false }, list],
])('an assistant with %j reaches %j', (given, access) => {
  expect(decide(given, { kind: 'assistant' })).toEqual(access);
});

test('a setup reaches its own list, and nothing in a folder with unmerged work', () => {
  expect(decide({ all: true }, { kind: 'setup', trust: 'users' })).toEqual(list);
  expect(decide({ all: true }, { kind: 'setup', trust: 'candidate' })).toEqual(list);
  expect(decide({ all: true }, { kind: 'setup', trust: 'none' })).toBe(false);
  const open = { all: true, setup: true };
  expect(decide(open, { kind: 'setup', trust: 'users' })).toBe(true);
  expect(decide(open, { kind: 'setup', trust: 'candidate' })).toBe(false);
});
