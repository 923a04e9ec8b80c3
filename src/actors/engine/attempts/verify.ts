import { failingLines } from '../../../machines/last-lines.ts';
import { someOf } from '../../../machines/plural.ts';
import type { AttemptInput, Failure } from '../../../machines/task.ts';
import type { EventType } from '../../journal/event-types.ts';
import { plainText } from '../../process/text-gatherer.ts';
import type { Network, Sandbox } from '../../sandbox/port.ts';
import { runSandboxed } from '../../sandbox/run-sandboxed.ts';
import type { CommandFolder, OpenWorkspace, Workspace } from '../../workspace/port.ts';

/** Runs the commands of `options.verify` in the attempt's folder, in order, until one fails. */
export type VerifyCommands = (
  attempt: AttemptInput,
  signal: AbortSignal,
) => Promise<{ readonly failure: Failure | null }>;

/**
 * Forgets the reports of the attempt. Then each command runs inside of the returned function, which
 * keeps the reports that it wrote.
 */
export type WatchReports = (
  attempt: AttemptInput,
  root: string,
) => Promise<<Result>(run: () => Promise<Result>) => Promise<Result>>;

const longestVerifyMs = 10 * 60_000;
/** The first failure is often far from the end; what is between the two is not kept. */
const [headOutput, tailOutput] = [128_000, 64_000];
const wholeOutput = 2_000;
const [errorLines, loggedLines] = [40, 400];
const longestLine = 200;

/** A part of an output that is long: what failed first, and the end. */
const keptOutput = (output: string, lines: number): string => {
  const text = plainText(output);
  return text.length <= wholeOutput
    ? text
    : failingLines(text.replace(new RegExp(`(.{${longestLine}}).+`, 'g'), '$1…'), lines);
};

const failureOfRefused = (command: string, refusal: string): Failure => ({
  code: 'verify_failed',
  message: `the command that must pass, ${JSON.stringify(command)}, was not run: ${refusal}`,
  facts: { command },
  retryable: false,
});

/** A folder without what the agent changed is not verified: it would pass, and stand for the work. */
const isIncomplete = ({
  isNew,
  taken,
  lacksWork,
}: Pick<OpenWorkspace, 'isNew' | 'taken' | 'lacksWork'>): boolean =>
  lacksWork === true || (isNew && taken === undefined);

const lostWork: Failure = {
  code: 'internal',
  message: 'its folder is gone, or on a server that stopped: what it changed cannot be verified',
  facts: { interrupted: true },
  retryable: true,
};

const unresolvedIn = (paths: readonly string[]): Failure => ({
  code: 'verify_failed',
  message: `conflict markers are left in ${someOf(paths)}: keep what both sides are for`,
  facts: {},
  retryable: false,
});

interface VerifyCommandPorts {
  readonly sandbox: Sandbox;
  readonly networkOf: (attempt: AttemptInput, user: { readonly kind: 'commands' }) => Network;
  readonly environmentOf: (attempt: AttemptInput) => Readonly<Record<string, string>>;
  readonly emit: (attempt: AttemptInput, type: EventType, data: unknown) => void;
}

interface VerifyCommand {
  readonly command: string;
  readonly folder: CommandFolder;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Each command runs inside of it. */
  readonly around?: <Result>(run: () => Promise<Result>) => Promise<Result>;
}

/** Runs one command for an attempt, and logs it. @returns why it did not pass; null: it did */
export const runVerifyCommand = async (
  { sandbox, networkOf, environmentOf, emit }: VerifyCommandPorts,
  attempt: AttemptInput,
  { command, folder, timeoutMs, signal, around = (run) => run() }: VerifyCommand,
): Promise<Failure | null> => {
  const { root, readable, git } = folder;
  const confined = {
    argv: ['/bin/sh', '-c', command] as const,
    root,
    readable,
    git,
    timeoutMs,
    signal,
    env: environmentOf(attempt),
    network: networkOf(attempt, { kind: 'commands' }),
    namedOutputs: true,
    onOutput: () => {},
    headBytes: headOutput,
    tailBytes: tailOutput,
  };
  const log = (message: string, facts: object = {}): void =>
    emit(attempt, 'log', { level: 'info', message, command, ...facts });
  log(`verify: ${command}`);
  const startedAt = performance.now();
  const result = await around(() => runSandboxed(sandbox, confined));
  if ('refusal' in result) return failureOfRefused(command, result.refusal);
  const { exitCode, output, timedOut } = result;
  const facts = { exit_code: exitCode, duration_ms: Math.round(performance.now() - startedAt) };
  if (exitCode === 0) {
    log(`verify passed: ${command}`, facts);
    return null;
  }
  if (signal.aborted) {
    log(`verify stopped: ${command}`, { duration_ms: facts.duration_ms });
    signal.throwIfAborted();
  }
  const why = timedOut
    ? `did not end within ${timeoutMs / 1_000} s`
    : `ended with exit code ${exitCode}`;
  log(`verify failed: ${command} ${why}`, {
    ...facts,
    level: 'warn',
    output: keptOutput(output, loggedLines),
  });
  return {
    code: 'verify_failed',
    message: `the command that must pass, ${JSON.stringify(command)}, ${why}`,
    facts: {
      command,
      exit_code: exitCode,
      output: keptOutput(output, errorLines),
      timed_out: timedOut || undefined,
    },
    retryable: false,
  };
};

export const createVerify =
  (
    ports: VerifyCommandPorts & {
      readonly workspace: Workspace;
      /** Wall limit of the attempt (ms); also limits each command. */
      readonly limitMs: (attempt: AttemptInput) => number;
      readonly watchReports: WatchReports;
    },
  ): VerifyCommands =>
  async (attempt, signal) => {
    const folder = await ports.workspace.open(attempt);
    if (isIncomplete(folder)) return { failure: lostWork };
    const timeoutMs = Math.min(ports.limitMs(attempt), longestVerifyMs);
    const keepingReports = await ports.watchReports(attempt, folder.root);
    const around = <Result>(run: () => Promise<Result>) =>
      ports.workspace.alone(() => keepingReports(run), { signal });
    const unresolved = await ports.workspace.unresolved(attempt);
    if (unresolved.length > 0) {
      const failure = unresolvedIn(unresolved);
      ports.emit(attempt, 'log', { level: 'warn', message: failure.message });
      return { failure };
    }
    return ports.workspace.asCheck(attempt, async () => {
      for (const command of attempt.options.verify ?? []) {
        const wanted = { command, folder, timeoutMs, signal, around };
        const failure = await runVerifyCommand(ports, attempt, wanted);
        if (failure !== null) return { failure };
      }
      return { failure: null };
    });
  };
