import type { Sandbox } from './port.ts';

/** Runs commands as the user, unconfined; only with `sandbox.mode: off`. */
export const createNoSandbox = (): Sandbox => ({
  describe: () => 'off: commands run as you, unconfined (sandbox.mode)',
  check: () => ({ ok: true, detail: 'off, by sandbox.mode' }),
  confine: ({ argv, root, env }) => ({ argv, cwd: root, env }),
});
