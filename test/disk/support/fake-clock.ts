import { spawnSync } from 'node:child_process';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { faketimeFolder } from '../../support/needs.ts';
import { temporaryFolder } from '../../support/temporary.ts';

/** A time of day that a test sets while programs run; null where libfaketime has no effect on Node. */
export const createFakeClock = () => {
  const file = join(temporaryFolder(), 'clock');
  const set = (offsetMs: number): void => {
    writeFileSync(`${file}.new`, `${offsetMs < 0 ? '' : '+'}${offsetMs / 1_000}\n`);
    renameSync(`${file}.new`, file);
  };
  const env = {
    LD_PRELOAD: join(faketimeFolder ?? '', 'libfaketimeMT.so.1'),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    // Timers count on: only the time of day is set.
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  };
  set(-86_400_000);
  const { stdout } = spawnSync(process.execPath, ['-p', 'Date.now()'], {
    env: { ...process.env, ...env },
  });
  const works = Math.abs(Number(stdout) + 86_400_000 - Date.now()) < 60_000;
  set(0);
  /** What the library leaves in memory of a process that is killed. */
  const forget = (pid: number): void => {
    for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
      rmSync(join('/dev/shm', name), { force: true });
  };
  return works ? { set, env, forget } : null;
};
