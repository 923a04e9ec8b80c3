import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createSystemSettings } from '../../../src/actors/sandbox/system-settings.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const system = () => {
  const source = join(temporaryFolder(), 'etc');
  const folder = join(temporaryFolder(), 'copies');
  for (const name of ['ssl/certs', 'ssl/private', 'alternatives', 'pki/own'])
    mkdirSync(join(source, name), { recursive: true });
  for (const name of ['passwd', 'shadow', 'hosts', 'ssl/certs/a.pem', 'ssl/private/key'])
    writeFileSync(join(source, name), name);
  symlinkSync('/usr/share/zoneinfo/UTC', join(source, 'localtime'));
  symlinkSync('/usr/bin/mawk', join(source, 'alternatives', 'awk'));
  return { source, folder, copy: createSystemSettings(folder, source) };
};

describe('the system’s settings', () => {
  test('are copied with their links, without private keys and other files', () => {
    const at = system().copy([]);

    expect(readdirSync(at).toSorted()).toEqual([
      'alternatives',
      'hosts',
      'localtime',
      'passwd',
      'ssl',
    ]);
    expect(readdirSync(join(at, 'ssl'))).toEqual(['certs']);
    expect(readFileSync(join(at, 'ssl/certs/a.pem'), 'utf8')).toBe('ssl/certs/a.pem');
    expect(readlinkSync(join(at, 'alternatives', 'awk'))).toBe('/usr/bin/mawk');
  });

  test('stay one copy until one changes; the copies of commands at work stay', () => {
    const { source, folder, copy } = system();
    const first = copy([]);
    expect(copy([])).toBe(first);

    const changed: string[] = [];
    for (let n = 1; n <= 8; n += 1) {
      writeFileSync(join(source, 'hosts'), 'x'.repeat(n));
      changed.push(copy([]));
    }
    writeFileSync(join(source, 'ssl/certs/b.pem'), 'b');
    const last = copy([]);

    expect(readFileSync(join(changed.at(-1) ?? '', 'hosts'), 'utf8')).toBe('xxxxxxxx');
    expect(readdirSync(join(last, 'ssl/certs'))).toEqual(['a.pem', 'b.pem']);
    expect(readdirSync(folder)).toHaveLength(5);
  });

  test('leave nothing half made where one cannot be copied', () => {
    const { source, folder, copy } = system();
    rmSync(join(source, 'passwd'));
    spawnSync('mkfifo', [join(source, 'passwd')]);

    expect(() => copy([])).toThrow();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('have a place for what is mounted below them', () => {
    const { source, copy } = system();

    const at = copy([join(source, 'pki/own'), join(source, 'shadow')]);

    expect(readdirSync(join(at, 'pki/own'))).toEqual([]);
    expect(readFileSync(join(at, 'shadow'), 'utf8')).toBe('');
  });
});
