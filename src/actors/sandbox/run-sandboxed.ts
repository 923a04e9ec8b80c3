import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attemptVariable } from '../process/orphans.ts';
import { type Command, type CommandResult, runCommand } from '../process/run-command.ts';
import type { Sandbox, SandboxRequest } from './port.ts';
import { nothingQuarantined } from './quarantine.ts';

export type SandboxedCommand = Omit<SandboxRequest, 'held'> &
  Omit<Command, 'argv' | 'cwd' | 'env' | 'mark'>;

export interface SandboxedResult extends CommandResult {
  /** Protected paths that the command made, relative to the root; they were moved away. */
  readonly quarantined: readonly string[];
  readonly quarantine: string | null;
}

/** Refuses a command before it runs, or afterwards for what it made and could not be moved away. */
export const runSandboxed = async (
  sandbox: Sandbox,
  {
    argv,
    root,
    readable,
    env,
    git,
    readOnly = false,
    network,
    inOwnFolder,
    ...bounds
  }: SandboxedCommand,
): Promise<SandboxedResult | { readonly refusal: string }> => {
  const isOurs = git != null || readOnly;
  const mark = randomUUID();
  const guard = isOurs ? undefined : await sandbox.shared?.guard(root, mark, env[attemptVariable]);
  if (guard !== undefined && 'refusal' in guard) return guard;
  const confined = await sandbox.confine({
    argv,
    root,
    readable,
    git,
    env,
    readOnly,
    network,
    inOwnFolder,
    held: guard?.readOnly,
  });
  if ('refusal' in confined) {
    await guard?.settle();
    return confined;
  }
  const { release, ...spawned } = confined;
  const result = await runCommand({ ...bounds, ...spawned, mark });
  release?.();
  const { moved, folder } = (await guard?.settle()) ?? nothingQuarantined;
  const refusal = isOurs ? null : (sandbox.shared?.unsettled(root) ?? null);
  return refusal === null ? { ...result, quarantined: moved, quarantine: folder } : { refusal };
};

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
