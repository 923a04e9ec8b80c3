import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, vi } from 'vitest';
import { registerHandler, unregisterHandler } from '../../../src/cli/handler/register.ts';
import { noGio, pathOf, testUnless } from '../../support/needs.ts';
import { linuxUser } from './linux.ts';

/**
 * A user with a GLib desktop, a program that records its arguments, and a terminal that only runs
 * it.
 */
const glibUser = () => {
  const { home, env, environment, put } = linuxUser();
  const folder = join(home, 'a b"c\'d`e$f\\g;h');
  // Not .mjs: as a module, node refuses a path with a backslash.
  const [script, node, records] = [
    join(folder, '50%u', 'agent.cjs'),
    join(folder, 'node'),
    join(home, 'records'),
  ];
  mkdirSync(dirname(script), { recursive: true });
  symlinkSync(process.execPath, node);
  writeFileSync(
    script,
    `require('node:fs').appendFileSync(${JSON.stringify(records)}, JSON.stringify(process.argv.slice(2)) + '\\n');`,
  );
  for (const terminal of ['gnome-terminal', 'xdg-terminal-exec']) {
    put(`bin/${terminal}`, '#!/bin/sh\n[ "$1" = -- ] && shift\nexec "$@"\n');
    execFileSync('chmod', ['+x', join(home, 'bin', terminal)]);
  }
  const run = (...args: readonly string[]): string =>
    execFileSync(pathOf('gio') ?? 'gio', args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...env, LC_ALL: 'C.UTF-8', PATH: `${join(home, 'bin')}:/usr/bin:/bin` },
    });
  const recorded = (): unknown[] =>
    existsSync(records)
      ? readFileSync(records, 'utf8')
          .trim()
          .split('\n')
          .map((line): unknown => JSON.parse(line))
      : [];
  return { environment: { ...environment, node, script }, run, recorded, home };
};

testUnless(noGio)('GLib uses our entry as the default until it is removed', async () => {
  const { environment, run } = glibUser();

  await registerHandler(environment);
  expect(run('mime', 'x-scheme-handler/agent')).toMatch(
    /^Default application .*: agent-task-server\.desktop$/m,
  );

  await unregisterHandler(environment);
  expect(run('mime', 'x-scheme-handler/agent')).toMatch(/^No default applications/);
});

testUnless(noGio).each([
  'agent://task/bd-a1b2',
  'agent://task/$(touch owned)',
  'agent://task/bd-a1b2;touch owned',
  'agent://task/a b  "c" \'d\' `id` \\e',
  'agent://task/bd-a1b2%0a--settings=1',
  'agent://task/%u%f%%',
  'agent:--settings=/tmp/evil.json',
  'agent://user:secret@host:80/x?y#z',
])('GLib hands over %j as one argument', async (url) => {
  const { environment, run, recorded, home } = glibUser();
  await registerHandler(environment);

  run('open', url);

  await vi.waitFor(() => expect(recorded()).toEqual([['open-url', '--', url]]));
  expect(existsSync(join(home, 'owned'))).toBe(false);
});
