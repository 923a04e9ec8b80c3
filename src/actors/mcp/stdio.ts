import type { Writable } from 'node:stream';
import { dayMs } from '../../machines/milliseconds.ts';
import { createHeadTailBuffer } from '../process/head-tail-buffer.ts';
import { createLineSplitter } from '../process/line-splitter.ts';
import type { Sandbox } from '../sandbox/port.ts';
import { runSandboxed, type SandboxedCommand } from '../sandbox/run-sandboxed.ts';
import { visibleText } from './clean-tools.ts';
import { maxMessageLength, type PeerInput, type Transport } from './peer.ts';

const longestLifeMs = 7 * dayMs;
/** Without its input a server should end by itself; then it is ended. */
const closeGraceMs = 300;
const shownErrorBytes = 1_000;
const maxErrorLength = 64 * 1024 * 1024;

export type StdioProgram = Pick<
  SandboxedCommand,
  'argv' | 'root' | 'readable' | 'git' | 'env' | 'readOnly' | 'network' | 'inOwnFolder'
>;

const endsWithin = (work: Promise<unknown>, ms: number): Promise<unknown> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
};

/** Starts a server as a command of the sandbox: one message a line, both ways. */
export const openStdio =
  (sandbox: Sandbox, program: StdioProgram) =>
  ({ receive, closed }: PeerInput): Transport => {
    const stop = new AbortController();
    const stderr = createHeadTailBuffer({ headBytes: 0, tailBytes: shownErrorBytes });
    let errorLength = 0;
    let unsent = '';
    let input: Writable | null = null;

    const end = (why: string): void => {
      closed(why);
      stop.abort();
    };
    const lines = createLineSplitter({
      longest: maxMessageLength,
      onLine: receive,
      onDropped: () => end(`it sent a line of more than ${maxMessageLength / 1024 ** 2} MiB`),
    });
    const takeOutput = (text: string, stream: 'stdout' | 'stderr'): void => {
      if (stop.signal.aborted) return;
      if (stream === 'stdout') {
        lines.push(text);
        return;
      }
      stderr.push(text);
      errorLength += text.length;
      if (errorLength > maxErrorLength) end('it floods its error output');
    };
    const run = async (): Promise<void> => {
      const result = await runSandboxed(sandbox, {
        ...program,
        timeoutMs: longestLifeMs,
        signal: stop.signal,
        ...{ headBytes: 0, tailBytes: shownErrorBytes },
        onStdin: (stdin) => {
          input = stdin;
          stdin.on('error', () => {});
          stdin.write(unsent);
          unsent = '';
        },
        onOutput: takeOutput,
      });
      if ('refusal' in result) return closed(result.refusal);
      const { text } = stderr.read();
      const said = visibleText(
        text === '' && result.exitCode === null ? result.output : text,
      ).trim();
      const code = result.exitCode === null ? '' : ` with exit code ${result.exitCode}`;
      closed(`it ended${code}${said === '' ? '' : `: ${said}`}`);
    };
    const done = run().catch((error: unknown) => closed(`it could not be started: ${error}`));

    return {
      send: (text) => {
        if (input === null) unsent += `${text}\n`;
        else input.write(`${text}\n`);
      },
      close: async () => {
        if (!stop.signal.aborted) {
          input?.end();
          await endsWithin(done, closeGraceMs);
        }
        stop.abort();
        await done;
      },
    };
  };
