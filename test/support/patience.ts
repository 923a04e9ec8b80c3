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

vi.waitFor = (callback, options) => waitFor(callback, patient(options));
vi.waitUntil = (callback, options) => waitUntil(callback, patient(options));
