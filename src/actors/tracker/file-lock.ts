import { randomBytes } from 'node:crypto';
import { closeSync, linkSync, openSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { beginningOf, isAlive } from '../is-alive.ts';

const holderSchema = z.object({ pid: z.int().positive(), host: z.string(), started: z.string(), token: z.string() });
type Holder = z.infer<typeof holderSchema>;

const defaultWaitMs = 10_000;
const foreignStaleMs = 30_000;

/** The lock is held by somebody else, and stayed so. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
}

const ownStart = beginningOf(process.pid);

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : null);

const parse = (text: string): Holder | null => {
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
};

const isStale = (path: string, text: string): boolean => {
  const holder = parse(text);
  if (holder === null || holder.host !== hostname()) return Date.now() - statSync(path).mtimeMs > foreignStaleMs;
  if (!isAlive(holder.pid)) return true;
  const started = beginningOf(holder.pid);
  // The start of another user's process may be hidden: what cannot be read proves nothing.
  return holder.started !== '' && started !== '' && started !== holder.started;
};

const quietly = <Result>(work: () => Result): Result | null => {
  try {
    return work();
  } catch {
    return null;
  }
};

/** Moves a stale lock away; if somebody renewed it in between, it is put back, and if it is gone, that is as well. */
const takeAway = (path: string, text: string): void => {
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  if (readFileSync(aside, 'utf8') !== text) quietly(() => linkSync(aside, path));
  unlinkSync(aside);
};

const tryTake = (path: string, text: string): boolean => {
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      writeFileSync(file, text);
    } catch (error) {
      // On a full disk: an empty lock would hide the cause from the next writer.
      quietly(() => unlinkSync(path));
      throw error;
    } finally {
      closeSync(file);
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
  const deadline = performance.now() + waitMs;
  for (let pause = 5; !tryTake(path, text); pause = Math.min(pause * 2, 100)) {
    const found = quietly(() => readFileSync(path, 'utf8'));
    if (found !== null && quietly(() => isStale(path, found)) === true) takeAway(path, found);
    else if (performance.now() >= deadline) throw heldBy(path, found);
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
    started: ownStart,
    token: randomBytes(8).toString('hex'),
  };
  const text = JSON.stringify(holder);
  await take(path, text, waitMs);
  try {
    return await work();
  } finally {
    if (quietly(() => readFileSync(path, 'utf8')) === text) quietly(() => unlinkSync(path));
  }
};
