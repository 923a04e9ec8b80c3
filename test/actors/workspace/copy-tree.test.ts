import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { copyTree } from '../../../src/actors/workspace/folders/setup-cache.ts';
import { temporaryFolder } from '../../support/temporary.ts';

test('a folder is copied as it is: names, modes and times, links as links, pipes not read', async () => {
  const folder = temporaryFolder();
  const [from, to] = [join(folder, '-rf'), join(folder, 'to')];
  mkdirSync(join(from, 'bin'), { recursive: true });
  writeFileSync(join(from, 'bin', "--help 'x'\n"), 'text');
  writeFileSync(join(from, 'bin', 'run'), '#!/bin/sh\n');
  chmodSync(join(from, 'bin', 'run'), 0o750);
  symlinkSync('/etc/passwd', join(from, 'out'));
  symlinkSync('nowhere', join(from, 'gone'));
  execFileSync('mkfifo', [join(from, 'pipe')]);

  await copyTree(from, to);

  expect(readFileSync(join(to, 'bin', "--help 'x'\n"), 'utf8')).toBe('text');
  expect(lstatSync(join(to, 'bin', 'run')).mode & 0o777).toBe(0o750);
  expect(lstatSync(join(to, 'bin', 'run')).mtimeMs).toBe(
    lstatSync(join(from, 'bin', 'run')).mtimeMs,
  );
  expect([readlinkSync(join(to, 'out')), readlinkSync(join(to, 'gone'))]).toEqual([
    '/etc/passwd',
    'nowhere',
  ]);
  expect(lstatSync(join(to, 'pipe')).isFIFO()).toBe(true);
});

test('a copy that cannot be made says why, and one that is cancelled ends', async () => {
  const folder = temporaryFolder();

  await expect(copyTree(join(folder, 'none'), join(folder, 'to'))).rejects.toThrow(
    /none could not be copied: cp: .*No such file/,
  );
  const abort = new AbortController();
  abort.abort(new Error('no longer wanted'));
  await expect(copyTree(folder, `${folder}-to`, abort.signal)).rejects.toThrow('no longer wanted');
  expect(existsSync(`${folder}-to`)).toBe(false);
});
