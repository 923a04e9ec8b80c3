import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase } from '../../../src/actors/store/database.ts';
import { takeLock, withLock } from '../../../src/actors/store/process-lock.ts';
import { embeddedAt, ledgerAt } from '../../support/ledger.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const titlesIn = (file: string): readonly string[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');

/** Six processes that take the lock and create tasks; a killed one is replaced. */
const startWriters = (folder: string) => {
  const [holder, acked] = [join(folder, 'holder'), join(folder, 'acked')];
  for (const file of [holder, acked]) writeFileSync(file, '');
  const args = [
    path('hold-lock.mjs'),
    path('../../../build/actors'),
    join(folder, 'lock'),
    holder,
    acked,
    folder,
  ];
  const start = (): ChildProcess =>
    spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const writers = Array.from({ length: 6 }, start);
  /** The present holder of the lock, killed so that the others find it free. */
  const killHolder = async (): Promise<void> => {
    const writer = await vi.waitUntil(
      () => writers.find(({ pid }) => String(pid) === readFileSync(holder, 'utf8')),
      { interval: 1 },
    );
    const gone = once(writer, 'exit');
    writer.kill('SIGKILL');
    await gone;
    writers[writers.indexOf(writer)] = start();
  };
  const stop = async (): Promise<void> => {
    for (const writer of writers) writer.kill('SIGKILL');
    await Promise.all(
      writers.map((writer) => writer.exitCode ?? writer.signalCode ?? once(writer, 'exit')),
    );
  };
  onTestFinished(stop);
  return { acked: () => titlesIn(acked), killHolder, stop };
};

test('many writers that are killed never hold the lock together, and lose nothing', {
  tags: ['slow'],
}, async () => {
  const folder = temporaryFolder();
  const writers = startWriters(folder);

  for (let kills = 0; kills < 15; kills += 1) {
    const before = writers.acked().length;
    await vi.waitUntil(() => writers.acked().length > before + 5, { interval: 5 });
    await writers.killHolder();
  }
  await writers.stop();

  const acked = writers.acked();
  const ledger = ledgerAt(folder, openDatabase({ file: join(folder, 'journal.db') }));
  const kept = (await embeddedAt(folder, {}, ledger).list()).map(({ id }) => id);
  await ledger.exchange.flush();
  const exported = titlesIn(join(folder, '.beads', 'issues.jsonl')).map(
    (line) => JSON.parse(line).id,
  );
  expect(acked).not.toContain('two holders');
  expect(exported.sort()).toEqual([...kept].sort());
  expect(new Set(kept).size).toBe(kept.length);
  expect(kept).toEqual(expect.arrayContaining([...acked]));
});

test('the wait for a held lock ends in time, also when the clock is set back', async () => {
  const lock = join(temporaryFolder(), 'lock');
  const held = takeLock(lock);
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());

  const waiting = withLock(lock, async () => 'ran', { waitMs: 100 });
  vi.setSystemTime(Date.now() - 3 * 3_600_000);

  await expect(waiting).rejects.toThrow(`another process has held the lock ${lock} for 0.1 s`);
  held?.release();
  expect(await withLock(lock, async () => 'ran', { waitMs: 0 })).toBe('ran');
});

test('a lock that is a link is not followed', () => {
  const folder = temporaryFolder();
  symlinkSync(join(folder, 'elsewhere'), join(folder, 'lock'));

  expect(() => takeLock(join(folder, 'lock'))).toThrow(
    `${join(folder, 'lock')} is not a regular file; remove it`,
  );
  expect(readdirSync(folder)).toEqual(['lock']);
});
