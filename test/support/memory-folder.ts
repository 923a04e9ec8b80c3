import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLong } from './long.ts';

const inMemory = '/dev/shm';
const neededBytes = 4 * 1024 ** 3;

const hasRoom = (): boolean => {
  if (!existsSync(inMemory)) return false;
  const { bavail, bsize } = statfsSync(inMemory);
  return bavail * bsize > neededBytes;
};

/** Containers often forbid it there. */
const runsPrograms = (folder: string): boolean => {
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  return spawnSync(program).status === 0;
};

/**
 * Temporary folders are in memory where that can be: the tests commit so often that they would wait
 * for the disk most of the time. The long form uses the disk.
 */
export const setup = (): (() => void) | undefined => {
  if (isLong || process.env['TMPDIR'] !== undefined || !hasRoom()) return undefined;
  const folder = mkdtempSync(join(inMemory, 'agent-tests-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  if (!runsPrograms(folder)) {
    remove();
    return undefined;
  }
  // Some tests run programs as another user.
  chmodSync(folder, 0o1777);
  process.env['TMPDIR'] = folder;
  return remove;
};
