import type { Command, CommandResult } from '../../src/actors/process/run-command.ts';

/** Ends with an exit code after so many ms, in the time of the simulation. */
export const simulatedArgv = (exitCode: number, ms: number): readonly [string, ...string[]] => [
  'simulated',
  String(exitCode),
  String(ms),
];

/** Takes the place of the real one in a simulation: no process is started. */
export const runCommand = ({
  argv: [, exitCode, ms],
  timeoutMs,
  signal,
}: Command): Promise<CommandResult> =>
  new Promise((resolve) => {
    const end = (how: Partial<CommandResult>): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      const nothing = { exitCode: null, timedOut: false, aborted: false, leftProcesses: false };
      resolve({ ...nothing, output: '', truncatedBytes: 0, ...how });
    };
    const stop = (): void => end({ aborted: true });
    const timer =
      Number(ms) > timeoutMs
        ? setTimeout(() => end({ timedOut: true }), timeoutMs)
        : setTimeout(() => end({ exitCode: Number(exitCode) }), Number(ms));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
