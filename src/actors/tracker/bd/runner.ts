import { statSync } from 'node:fs';

export interface BdOutput {
  readonly exitCode: number | null;
  /** A signal that we did not send, or null. */
  readonly signal: string | null;
  readonly timedOut: boolean;
  readonly tooLarge: boolean;
  /** Why it could not start, such as `ENOENT`; else null. */
  readonly startError: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface BdSpawn {
  readonly file: string;
  readonly args: readonly string[];
  /** Text for stdin; absent closes it. */
  readonly input?: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

const outputBytes = 128 * 1024 * 1024;
/** After SIGTERM, bd writes what it holds. */
const endPatienceMs = 5_000;

/**
 * Runs bd once, without a shell or inherited environment. Every failure is an output; never
 * rejects.
 */
export const runBd = async ({
  file,
  args,
  input,
  cwd,
  env,
  timeoutMs,
}: BdSpawn): Promise<BdOutput> => {
  // A missing folder and a missing program are the same error to the kernel.
  if (statSync(cwd, { throwIfNoEntry: false }) === undefined)
    return outputNotStarted('the project folder is gone');
  // Loaded late: a command on a project without bd starts a fifth faster.
  const { execa } = await import('execa');
  const result = await execa(file, args, {
    cwd,
    env,
    extendEnv: false,
    reject: false,
    timeout: timeoutMs,
    forceKillAfterDelay: endPatienceMs,
    maxBuffer: outputBytes,
    stripFinalNewline: false,
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
  });
  const { exitCode, signal, timedOut, isMaxBuffer, stdout, stderr } = result;
  const started = exitCode !== undefined || signal !== undefined || timedOut || isMaxBuffer;
  return {
    exitCode: exitCode ?? null,
    signal: timedOut || isMaxBuffer ? null : (signal ?? null),
    timedOut,
    tooLarge: isMaxBuffer,
    startError: started ? null : (result.code ?? result.shortMessage ?? 'it did not start'),
    stdout,
    stderr,
  };
};

const outputNotStarted = (startError: string): BdOutput => ({
  exitCode: null,
  signal: null,
  timedOut: false,
  tooLarge: false,
  startError,
  stdout: '',
  stderr: '',
});
