import { lastLines } from '../../machines/last-lines.ts';
import { type AttemptInput, type Failure, failureOf } from '../../machines/task.ts';
import type { EventType } from '../journal/event-types.ts';
import type { Sandbox } from '../sandbox/port.ts';
import { runSandboxed } from '../sandbox/run-sandboxed.ts';
import type { OpenWorkspace, Workspace } from '../workspace/port.ts';

/** Commands of the user that run once in each new worktree, before its agent. */
export interface SetupSettings {
  readonly commands: readonly string[];
  /** Only in the worktree of a commit that a person made or merged. */
  readonly network: boolean;
  readonly timeoutMs: number;
  /** Single names at the top of the worktree, kept for the next one with the same lockfile. */
  readonly cache: readonly string[];
}

export interface SetupPorts {
  readonly settings: () => { readonly setup: SetupSettings | null; readonly merge: string };
  readonly workspace: Pick<Workspace, 'setupCache'>;
  readonly sandbox: Sandbox;
  readonly environmentOf: (attempt: AttemptInput) => Readonly<Record<string, string>>;
  readonly emit: (attempt: AttemptInput, type: EventType, data: unknown) => void;
}

/** @returns why it failed; null when the worktree is ready */
export type SetupWorktree = (
  attempt: AttemptInput,
  opened: OpenWorkspace,
  signal: AbortSignal,
) => Promise<Failure | null>;

const shownBytes = 4_000;

const networkAdvice = (wanted: boolean, isTrusted: boolean): string => {
  if (!wanted) return '; it ran without the network: workspace.setup.network allows it';
  return isTrusted
    ? ''
    : '; it ran without the network, since its folder has work that no person has merged: merge that first';
};

const setupCommandOf =
  ({ sandbox, environmentOf, emit }: SetupPorts, setup: SetupSettings, isTrusted: boolean) =>
  async (
    attempt: AttemptInput,
    command: string,
    { root, readable, git }: OpenWorkspace,
    signal: AbortSignal,
  ): Promise<Failure | null> => {
    const log = (message: string, facts: object = {}): void =>
      emit(attempt, 'log', { level: 'info', message, command, ...facts });
    log(`setup: ${command}`);
    const startedAt = performance.now();
    const result = await runSandboxed(sandbox, {
      argv: ['/bin/sh', '-c', command],
      ...{ root, readable, git, signal },
      env: environmentOf(attempt),
      network: setup.network && isTrusted,
      timeoutMs: setup.timeoutMs,
      namedOutputs: true,
      onOutput: () => {},
      headBytes: 0,
      tailBytes: shownBytes,
    });
    signal.throwIfAborted();
    const named = `the setup of the worktree, ${JSON.stringify(command)},`;
    if ('refusal' in result)
      return failureOf('tool_failed', `${named} was not run: ${result.refusal}`, { command });
    const { exitCode, timedOut } = result;
    const duration = { duration_ms: Math.round(performance.now() - startedAt) };
    if (exitCode === 0) {
      log(`setup done: ${command}`, { exit_code: 0, ...duration });
      return null;
    }
    const why = timedOut
      ? `did not end within ${setup.timeoutMs / 1_000} s (workspace.setup.timeout_seconds)`
      : `ended with exit code ${exitCode}`;
    const output = lastLines(result.output.slice(-shownBytes));
    const facts = { exit_code: exitCode, output };
    log(`setup failed: ${command} ${why}`, { level: 'warn', ...facts, ...duration });
    const advice = timedOut ? '' : networkAdvice(setup.network, isTrusted);
    return failureOf('tool_failed', `${named} ${why}${advice}`, { command, ...facts });
  };

/**
 * Runs the commands in order until one fails, or takes what an earlier setup made from the same
 * lockfile. Only a worktree without the work of an agent fills the cache or reaches the network.
 */
export const createSetupWorktree =
  (ports: SetupPorts): SetupWorktree =>
  async (attempt, opened, signal) => {
    const { setup, merge } = ports.settings();
    const cache = ports.workspace.setupCache;
    if (setup === null || setup.commands.length === 0 || cache === null) return null;
    const isTrusted = opened.isUsersCommit && merge === 'none';
    const { root } = opened;
    const key = setup.cache.length === 0 ? null : await cache.keyOf(root, setup.commands);
    if (key !== null && (await cache.take(key, root, setup.cache))) {
      const message = `setup: ${setup.cache.join(', ')} copied from an earlier setup with the same lockfile`;
      ports.emit(attempt, 'log', { level: 'info', message });
      return null;
    }
    const run = setupCommandOf(ports, setup, isTrusted);
    for (const command of setup.commands) {
      const failure = await run(attempt, command, opened, signal);
      if (failure !== null) return failure;
    }
    if (key !== null && isTrusted) await cache.keep(key, root, setup.cache);
    return null;
  };
