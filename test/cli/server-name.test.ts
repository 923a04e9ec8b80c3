import { mkdirSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { serverNameOf } from '../../src/cli/config/places/project.ts';
import { temporaryFolder } from '../support/temporary.ts';

const projectIn = (stateDir: string) => ({
  root: temporaryFolder(),
  stateDir,
  defaultDir: stateDir,
});

test('servers with the same host name and path of the state folder have names of their own', () => {
  const stateDir = temporaryFolder();
  const first = serverNameOf(projectIn(stateDir));
  const again = serverNameOf(projectIn(stateDir));
  // As another disk has it at the same place.
  rmSync(join(stateDir, 'server-name'));
  const other = serverNameOf(projectIn(stateDir));

  expect(again).toBe(first);
  expect(other).not.toBe(first);
  expect(first).toMatch(/^[\w.-]+-[0-9a-f]{10}$/);
  expect(first.startsWith(hostname().replaceAll(/[^\w.-]/g, '-'))).toBe(true);
});

test('a state folder of an earlier version keeps the name under which the store knows its worktrees', () => {
  const stateDir = temporaryFolder();
  mkdirSync(join(stateDir, 'worktrees'));

  const name = serverNameOf(projectIn(stateDir));
  rmSync(join(stateDir, 'server-name'));

  expect(serverNameOf(projectIn(stateDir))).toBe(name);
});
