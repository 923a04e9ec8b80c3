import type { Sandbox } from './port.ts';

/** By the user's own word: commands run as the user, with nothing around them. */
export const createNoSandbox = (): Sandbox => ({
  describe: () => 'off: commands run as you, unconfined (sandbox.mode)',
  check: () => ({ ok: true, detail: 'off, by sandbox.mode' }),
  confine: ({ argv, root, env }) => ({ argv, cwd: root, env }),
});
