import { setTimeout as pause } from 'node:timers/promises';
import { vi } from 'vitest';

/**
 * What never comes about still fails; the second that Vitest waits by itself is too short on a busy
 * machine. `expect.poll` has its own in the configuration.
 */
const timeout = 60_000;
const { waitFor, waitUntil } = vi;
type Options = Parameters<typeof waitFor>[1];

const patient = (options: Options): Options =>
  typeof options === 'number' ? options : { timeout, ...options };

/** Vitest moves a faked clock at each look, so that what a test counts would depend on the machine. */
const waitWithoutTime = async <T>(callback: () => T | Promise<T>): Promise<T> => {
  for (const end = process.hrtime.bigint() + BigInt(timeout * 1e6); ; await pause(5))
    try {
      return await callback();
    } catch (error) {
      if (process.hrtime.bigint() > end) throw error;
    }
};

vi.waitFor = (callback, options) =>
  vi.isFakeTimers() ? waitWithoutTime(callback) : waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
