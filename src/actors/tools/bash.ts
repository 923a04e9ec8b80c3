import { z } from 'zod';
import type { CommandResult } from '../process/run-command.ts';
import { runSandboxed, type SandboxedResult } from '../sandbox/run-sandboxed.ts';
import type { OwnTool } from './port.ts';

/** With the closing line these stay below the 16 KiB of a result, so that nothing is cut twice. */
const headBytes = 4 * 1024;
const tailBytes = 12 * 1024 - 512;
const maxEmittedBytes = 64 * 1024;
const emitCostBytes = 64;

const bashArguments = z.strictObject({
  command: z
    .string()
    .min(1)
    .describe('a /bin/sh command line; it runs in the workspace root, without input'),
  timeout_seconds: z
    .int()
    .min(1)
    .max(600)
    .default(120)
    .describe('the command is ended after this time'),
});

/**
 * Passes on up to 64 KiB of output; each piece counts at least `emitCostBytes`, so many tiny ones
 * end too.
 */
const createEmitter = (emit: (chunk: string) => void): ((text: string) => void) => {
  let leftBytes = maxEmittedBytes;
  return (text) => {
    if (leftBytes <= 0) return;
    const chunk = text.slice(0, leftBytes);
    leftBytes -= Math.max(emitCostBytes, Buffer.byteLength(chunk));
    emit(leftBytes > 0 ? chunk : `${chunk}\n[further output is not streamed]\n`);
  };
};

const closingLine = (result: CommandResult, timeoutSeconds: number): string => {
  if (result.timedOut) return `[timed out after ${timeoutSeconds} s; all its processes were ended]`;
  if (result.aborted) return '[cancelled; all its processes were ended]';
  if (result.exitCode === null) return '[the command could not start]';
  const left = result.leftProcesses ? '; processes that it left in the background were ended' : '';
  return `[exit code ${result.exitCode}${left}]`;
};

const quarantineLines = ({ quarantined, quarantine }: SandboxedResult): readonly string[] =>
  quarantined.map(
    (path) =>
      `[${path} is protected: other programs run or trust it, so agents may not create it; it was moved to ${quarantine}]`,
  );

export const bashTool: OwnTool<z.infer<typeof bashArguments>> = {
  name: 'bash',
  files: 'changes',
  isRepeatable: false,
  description:
    'Runs a shell command and returns its output (the first 4 KiB and the last 12 KiB; longer output is saved in a file) and exit code. Nothing that it starts outlives the call.',
  schema: bashArguments,
  run: async (
    { command, timeout_seconds },
    { root, readable, git, env, sandbox, network, signal, emit, openLog },
  ) => {
    const log = openLog(headBytes + tailBytes);
    const show = createEmitter(emit);
    const result = await runSandboxed(sandbox, {
      argv: ['/bin/sh', '-c', command],
      root,
      readable,
      git,
      env,
      network,
      timeoutMs: timeout_seconds * 1_000,
      signal,
      namedOutputs: true,
      onOutput: (text) => {
        log.push(text);
        show(text);
      },
      headBytes,
      tailBytes,
    }).catch((error: unknown) => {
      log.close();
      throw error;
    });
    const kept = log.close();
    if ('refusal' in result) return { ok: false, text: result.refusal };
    const output = result.output.trimEnd() === '' ? '(no output)' : result.output.trimEnd();
    const whole =
      kept === null
        ? []
        : [
            `[${kept.isWhole ? 'the whole' : 'more of the'} output is in ${kept.path}; commands can read it]`,
          ];
    const protectedLines = quarantineLines(result);
    const lines = [output, ...whole, ...protectedLines, closingLine(result, timeout_seconds)];
    return { ok: result.exitCode === 0 && protectedLines.length === 0, text: lines.join('\n') };
  },
};
