import { vi } from 'vitest';

/**
 * What never comes about still fails; the second that Vitest waits by itself is too short on a busy
 * machine.
 */
const timeout = 60_000;
const { waitFor, waitUntil } = vi;

vi.waitFor = (callback, options = { timeout }) => waitFor(callback, options);
vi.waitUntil = (callback, options = { timeout }) => waitUntil(callback, options);
