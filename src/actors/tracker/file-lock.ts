import { randomBytes } from 'node:crypto';
import { link, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';

const holderSchema = z.object({ pid: z.int().positive(), host: z.string(), started: z.string(), token: z.string() });
type Holder = z.infer<typeof holderSchema>;

const waitMs = 10_000;
const foreignStaleMs = 30_000;

/** The lock is held by somebody else, and stayed so. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
}

/** When the process began, so that a process id that was used again is not taken for its predecessor. */
const startOf = async (pid: number): Promise<string> => {
  try {
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
};

const runs = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
};

const parse = (text: string): Holder | null => {
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
};

const isStale = async (path: string, text: string): Promise<boolean> => {
  const holder = parse(text);
  if (holder === null || holder.host !== hostname()) return Date.now() - (await stat(path)).mtimeMs > foreignStaleMs;
  return !runs(holder.pid) || (holder.started !== '' && (await startOf(holder.pid)) !== holder.started);
};

/** Moves a stale lock away; if somebody renewed it in between, it is put back. */
const takeAway = async (path: string, text: string): Promise<void> => {
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  await rename(path, aside);
  if ((await readFile(aside, 'utf8')) !== text) await link(aside, path).catch(() => {});
  await unlink(aside);
};

const tryTake = async (path: string, text: string): Promise<boolean> => {
  try {
    await writeFile(path, text, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
};

/**
 * Runs work while this process alone holds the lock file. A lock whose process is gone is taken over.
 * @throws LockedError naming the holder when it is not free within ten seconds
 */
export const withFileLock = async <Result>(path: string, work: () => Promise<Result>): Promise<Result> => {
  const holder = {
    pid: process.pid,
    host: hostname(),
    started: await startOf(process.pid),
    token: randomBytes(8).toString('hex'),
  };
  const text = JSON.stringify(holder);
  const deadline = Date.now() + waitMs;
  for (let pause = 5; !(await tryTake(path, text)); pause = Math.min(pause * 2, 100)) {
    const found = await readFile(path, 'utf8').catch(() => null);
    if (found !== null && (await isStale(path, found).catch(() => false))) await takeAway(path, found).catch(() => {});
    else if (Date.now() > deadline) {
      const other = parse(found ?? '');
      throw new LockedError(
        other === null ? `${path} is held` : `${path} is held by process ${other.pid} on ${other.host}`,
      );
    } else await delay(pause);
  }
  try {
    return await work();
  } finally {
    if ((await readFile(path, 'utf8').catch(() => '')) === text) await unlink(path).catch(() => {});
  }
};
