import { randomBytes } from 'node:crypto';
import { link, open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';

const holderSchema = z.object({ pid: z.int().positive(), host: z.string(), started: z.string(), token: z.string() });
type Holder = z.infer<typeof holderSchema>;

const defaultWaitMs = 10_000;
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
    return codeOf(error) === 'EPERM';
  }
};

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : null);

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
  if (!runs(holder.pid)) return true;
  const started = await startOf(holder.pid);
  // The start of another user's process may be hidden: what cannot be read proves nothing.
  return holder.started !== '' && started !== '' && started !== holder.started;
};

/** Moves a stale lock away; if somebody renewed it in between, it is put back, and if it is gone, that is as well. */
const takeAway = async (path: string, text: string): Promise<void> => {
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  if ((await readFile(aside, 'utf8')) !== text) await link(aside, path).catch(() => {});
  await unlink(aside);
};

const tryTake = async (path: string, text: string): Promise<boolean> => {
  try {
    const handle = await open(path, 'wx', 0o600);
    try {
      await handle.writeFile(text);
    } catch (error) {
      // On a full disk: an empty lock would hide the cause from the next writer.
      await unlink(path).catch(() => {});
      throw error;
    } finally {
      await handle.close();
    }
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
};

const heldBy = (path: string, text: string | null): LockedError => {
  const other = parse(text ?? '');
  return new LockedError(
    other === null ? `${path} is held` : `${path} is held by process ${other.pid} on ${other.host}`,
  );
};

const take = async (path: string, text: string, waitMs: number): Promise<void> => {
  const deadline = Date.now() + waitMs;
  for (let pause = 5; !(await tryTake(path, text)); pause = Math.min(pause * 2, 100)) {
    const found = await readFile(path, 'utf8').catch(() => null);
    if (found !== null && (await isStale(path, found).catch(() => false))) await takeAway(path, found);
    else if (Date.now() >= deadline) throw heldBy(path, found);
    else await delay(pause);
  }
};

/**
 * Runs work while this process alone holds the lock file. A lock whose process is gone is taken over.
 * @throws LockedError naming the holder when it is not free in time (ten seconds)
 */
export const withFileLock = async <Result>(
  path: string,
  work: () => Promise<Result>,
  { waitMs = defaultWaitMs }: { readonly waitMs?: number } = {},
): Promise<Result> => {
  const holder = {
    pid: process.pid,
    host: hostname(),
    started: await startOf(process.pid),
    token: randomBytes(8).toString('hex'),
  };
  const text = JSON.stringify(holder);
  await take(path, text, waitMs);
  try {
    return await work();
  } finally {
    if ((await readFile(path, 'utf8').catch(() => '')) === text) await unlink(path).catch(() => {});
  }
};
