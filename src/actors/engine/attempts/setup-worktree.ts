import { lastLines } from '../../../machines/last-lines.ts';
import { type AttemptInput, type Failure, failureOf } from '../../../machines/task.ts';
import type { EventType } from '../../journal/event-types.ts';
import type { NetworkAccess } from '../../network/access.ts';
import { plainText } from '../../process/text-gatherer.ts';
import type { Network, Sandbox } from '../../sandbox/port.ts';
import { runSandboxed } from '../../sandbox/run-sandboxed.ts';
import type { CommandFolder, OpenWorkspace, Workspace } from '../../workspace/port.ts';

/** Commands of the user that run once in each new worktree, before its agent. */
export interface SetupSettings {
  readonly commands: readonly string[];
  /** Only in the worktree of a commit that a person made or merged. */
  readonly network: NetworkAccess;
  readonly timeoutMs: number;
  /** Single names at the top of the worktree, kept for the next one with the same lockfile. */
  readonly cache: readonly string[];
}

/**
 * The folder that a setup runs in: of the user's own commit; of a merge that is tested, where a list of
 * hosts may be reached, without install scripts; else with unmerged work of an agent.
 */
export type SetupTrust = 'users' | 'candidate' | 'none';

export interface SetupPorts {
  readonly settings: () => { readonly setup: SetupSettings | null; readonly merge: string };
  readonly workspace: Pick<Workspace, 'setups'>;
  readonly sandbox: Sandbox;
  readonly networkOf: (
    attempt: AttemptInput,
    user: { readonly kind: 'setup'; readonly trust: SetupTrust },
  ) => Network;
  readonly environmentOf: (attempt: AttemptInput) => Readonly<Record<string, string>>;
  readonly emit: (attempt: AttemptInput, type: EventType, data: unknown) => void;
}

/** @returns why it failed; null when the worktree is ready */
export type SetupWorktree = (
  attempt: AttemptInput,
  opened: CommandFolder & Pick<OpenWorkspace, 'isUsersCommit'> & { readonly isCandidate?: true },
  signal: AbortSignal,
) => Promise<Failure | null>;

const shownBytes = 4_000;

const networkAdvice = (wanted: NetworkAccess, trust: SetupTrust): string => {
  if (wanted === false) return '; it ran without the network: workspace.setup.network allows it';
  if (trust === 'none')
    return '; it ran without the network, since its folder has work that no person has merged: merge that first';
  return trust === 'candidate' && wanted === true
    ? '; it ran without the network: before a merge only a list of hosts in workspace.setup.network allows it'
    : '';
};

/** npm asks a network that is not there again and again, for more than a minute. */
const withoutRetries = { npm_config_offline: 'true' };
/** An agent may have named any package: npm and yarn run no scripts of packages. */
const withoutScripts = { npm_config_ignore_scripts: 'true', YARN_ENABLE_SCRIPTS: 'false' };

/** How the log, a failure and its limit of time are named. */
interface Words {
  readonly log: string;
  readonly whole: string;
  readonly limit: string;
}
const setupWords: Words = {
  log: 'setup',
  whole: 'the setup of the worktree',
  limit: 'workspace.setup.timeout_seconds',
};
const regenerateWords: Words = {
  log: 'merge.regenerate',
  whole: 'merge.regenerate',
  limit: 'merge.timeout_seconds',
};

const setupCommandOf =
  (
    { sandbox, networkOf, environmentOf, emit }: SetupPorts,
    setup: Pick<SetupSettings, 'network' | 'timeoutMs'>,
    trust: SetupTrust,
    words = setupWords,
  ) =>
  async (
    attempt: AttemptInput,
    command: string,
    { root, readable, git }: CommandFolder,
    signal: AbortSignal,
  ): Promise<Failure | null> => {
    const log = (message: string, facts: object = {}): void =>
      emit(attempt, 'log', { level: 'info', message, command, ...facts });
    log(`${words.log}: ${command}`);
    const network = networkOf(attempt, { kind: 'setup', trust });
    const isCutOff = setup.network !== false && network === false;
    const env = {
      ...environmentOf(attempt),
      ...(isCutOff ? withoutRetries : {}),
      ...(trust === 'candidate' && network !== false ? withoutScripts : {}),
    };
    const startedAt = performance.now();
    const result = await runSandboxed(sandbox, {
      argv: ['/bin/sh', '-c', command],
      root,
      readable,
      git,
      signal,
      env,
      network,
      timeoutMs: setup.timeoutMs,
      namedOutputs: true,
      onOutput: () => {},
      headBytes: 0,
      tailBytes: shownBytes,
    });
    signal.throwIfAborted();
    const named = `${words.whole}, ${JSON.stringify(command)},`;
    if ('refusal' in result)
      return failureOf('tool_failed', `${named} was not run: ${result.refusal}`, { command });
    const { exitCode, timedOut } = result;
    const duration = { duration_ms: Math.round(performance.now() - startedAt) };
    if (exitCode === 0) {
      log(`${words.log} done: ${command}`, { exit_code: 0, ...duration });
      return null;
    }
    const why = timedOut
      ? `did not end within ${setup.timeoutMs / 1_000} s (${words.limit})`
      : `ended with exit code ${exitCode}`;
    const output = lastLines(plainText(result.output.slice(-shownBytes)));
    const facts = { exit_code: exitCode, output };
    log(`${words.log} failed: ${command} ${why}`, { level: 'warn', ...facts, ...duration });
    const advice = timedOut ? '' : networkAdvice(setup.network, trust);
    return failureOf('tool_failed', `${named} ${why}${advice}`, { command, ...facts });
  };

const runAll = async (
  run: ReturnType<typeof setupCommandOf>,
  { commands }: SetupSettings,
  attempt: AttemptInput,
  folder: CommandFolder,
  signal: AbortSignal,
): Promise<Failure | null> => {
  for (const command of commands) {
    const failure = await run(attempt, command, folder, signal);
    if (failure !== null) return failure;
  }
  return null;
};

/**
 * Fills the cache in a folder of the project's own commit, for an attempt that has unmerged work of
 * an agent and the lockfile of that commit. @returns why it failed; null also when it cannot be filled
 */
const fillCache = async (
  ports: SetupPorts,
  setup: SetupSettings,
  key: string,
  attempt: AttemptInput,
  signal: AbortSignal,
): Promise<Failure | null> => {
  const { setups } = ports.workspace;
  if (setups === null || setup.network === false) return null;
  const { cache, inUsersCommit } = setups;
  return inUsersCommit(async (folder) => {
    if ((await cache.keyOf(folder.root, setup.commands)) !== key || (await cache.has(key)))
      return null;
    const message = 'setup: in a folder of your own commit, which has the same lockfile';
    ports.emit(attempt, 'log', { level: 'info', message });
    const run = setupCommandOf(ports, setup, 'users');
    const failure = await runAll(run, setup, attempt, folder, signal);
    if (failure === null) await cache.keep(key, folder.root, setup.cache);
    return failure;
  }, signal);
};

/** Runs commands of `merge.regenerate`, as a setup of a merge. @returns why one failed */
export const createRegenerate =
  (ports: SetupPorts, landing: () => { readonly timeoutMs: number }) =>
  async (
    attempt: AttemptInput,
    commands: readonly string[],
    folder: CommandFolder,
    signal: AbortSignal,
  ): Promise<string | null> => {
    const { timeoutMs } = landing();
    const network = ports.settings().setup?.network ?? false;
    const run = setupCommandOf(ports, { network, timeoutMs }, 'candidate', regenerateWords);
    for (const command of commands) {
      const failure = await run(attempt, command, folder, signal);
      if (failure !== null) return failure.message;
    }
    return null;
  };

/**
 * Runs the commands in order until one fails, or takes what an earlier setup made from the same
 * lockfile. Only a folder without the work of an agent fills the cache or reaches the network.
 */
export const createSetupWorktree =
  (ports: SetupPorts): SetupWorktree =>
  async (attempt, opened, signal) => {
    const { setup, merge } = ports.settings();
    const cache = ports.workspace.setups?.cache;
    if (setup === null || setup.commands.length === 0 || cache === undefined) return null;
    const isTrusted = opened.isUsersCommit && merge === 'none';
    const { root } = opened;
    const key = setup.cache.length === 0 ? null : await cache.keyOf(root, setup.commands);
    if (key !== null && !isTrusted && merge === 'none' && !(await cache.has(key))) {
      const failure = await fillCache(ports, setup, key, attempt, signal);
      if (failure !== null) return failure;
    }
    if (key !== null && (await cache.has(key))) {
      const message = `setup: copies ${setup.cache.join(', ')} from an earlier setup with the same lockfile`;
      ports.emit(attempt, 'log', { level: 'info', message });
      if (await cache.take(key, root, setup.cache)) return null;
    }
    const unmerged = opened.isCandidate === true ? 'candidate' : 'none';
    const run = setupCommandOf(ports, setup, isTrusted ? 'users' : unmerged);
    const failure = await runAll(run, setup, attempt, opened, signal);
    if (failure === null && key !== null && isTrusted) await cache.keep(key, root, setup.cache);
    return failure;
  };
