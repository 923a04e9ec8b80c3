import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Sandbox } from './port.ts';

/** Runs commands as the user, unconfined; only with `sandbox.mode: off`. */
export const createNoSandbox = (): Sandbox => ({
  describe: () => 'off: commands run as you, unconfined (sandbox.mode)',
  check: () => ({ ok: true, detail: 'off, by sandbox.mode' }),
  confine: async ({ argv, root, env, inOwnFolder }) => {
    if (inOwnFolder !== true) return { argv, cwd: root, env };
    const cwd = await mkdtemp(join(tmpdir(), 'agent-server-'));
    return { argv, cwd, env, release: () => void rm(cwd, { recursive: true, force: true }) };
  },
});
