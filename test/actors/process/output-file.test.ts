import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import {
  createOutputFile,
  outputFileBytesAtMost,
} from '../../../src/actors/process/output-file.ts';
import { notLinux, testUnless } from '../../support/needs.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const open = (folder: string, more: Partial<Parameters<typeof createOutputFile>[0]> = {}) =>
  createOutputFile({
    folder: join(folder, 'logs'),
    makeFolder: () => mkdirSync(join(folder, 'logs'), { recursive: true }),
    prefix: '1-',
    name: '1-2.1.log',
    redact: (text) => text.replaceAll('hunter2', '***'),
    fromBytes: 10,
    ...more,
  });

test('short output leaves no file', () => {
  const folder = temporaryFolder();
  const log = open(folder);

  log.push('1234567890');

  expect(log.close()).toBeNull();
  expect(existsSync(join(folder, 'logs'))).toBe(false);
});

test('longer output is kept whole and private, with its secrets removed even when they came in pieces', () => {
  const log = open(temporaryFolder());

  for (const piece of ['the key is hun', 'ter2, no', ' more\nä', 'nd the end']) log.push(piece);
  const { path = '', isWhole } = log.close() ?? {};

  expect(isWhole).toBe(true);
  expect(readFileSync(path, 'utf8')).toBe('the key is ***, no more\nänd the end');
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a secret on an endless line is removed wherever the line is cut', () => {
  const log = open(temporaryFolder());

  for (let piece = 0; piece < 40; piece += 1) log.push(`${'x'.repeat(8_189)}hunter2`);
  const { path = '' } = log.close() ?? {};

  const text = readFileSync(path, 'utf8');
  expect(text).not.toContain('hunter2');
  expect(text.split('***')).toHaveLength(41);
});

test('git does not see the file in the project', () => {
  const folder = temporaryFolder();
  const log = open(folder);
  log.push('more than ten bytes');
  log.close();

  expect(readFileSync(join(folder, 'logs', '.gitignore'), 'utf8')).toBe('*\n');
});

testUnless(notLinux)('a pipe in its place blocks nothing', async () => {
  const folder = temporaryFolder();
  await execa('mkfifo', [join(folder, '1-2.1.log')]);
  const log = open(folder, { folder });

  log.push('more than ten bytes');

  expect(log.close()).toBeNull();
});

test('a flood is kept up to 4 MiB, with a note', () => {
  const log = open(temporaryFolder());

  for (let piece = 0; piece < 10; piece += 1) log.push('x'.repeat(1024 * 1024));
  const { path = '', isWhole } = log.close() ?? {};

  expect(isWhole).toBe(false);
  expect(statSync(path).size).toBe(outputFileBytesAtMost);
  expect(readFileSync(path, 'utf8').endsWith('x\n[further output is not saved]\n')).toBe(true);
});

test('the logs of one attempt share a limit, those of another attempt have their own', () => {
  const folder = temporaryFolder();
  const flood = (prefix: string, name: string) => {
    const log = open(folder, { prefix, name });
    log.push('x'.repeat(5 * 1024 * 1024));
    return log.close();
  };

  const kept = Array.from({ length: 10 }, (_, index) => flood('1-', `1-${index}.log`)).filter(
    (path) => path !== null,
  );

  expect(kept).toHaveLength(8);
  expect(flood('2-', '2-1.log')).not.toBeNull();
});

test.each([
  [
    'a link in its place',
    (folder: string) => symlinkSync('/etc/hostname', join(folder, '1-2.1.log')),
  ],
  ['a folder that is not ours', () => {}],
])('%s is not followed, and the command does not fail over it', (what, prepare) => {
  const folder = temporaryFolder();
  prepare(folder);
  const makeFolder = (): void => {
    if (what.startsWith('a folder')) throw new Error('it leads elsewhere');
  };
  const log = open(folder, { folder, makeFolder });

  log.push('more than ten bytes');
  log.push('and more');

  expect(log.close()).toBeNull();
});

test('a folder that cannot be made costs the log, not the command', () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'logs'), 'a file');
  const log = open(folder);

  log.push('more than ten bytes');

  expect(log.close()).toBeNull();
});
