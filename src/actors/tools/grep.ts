import { z } from 'zod';
import { keepWholeLines } from '../process/head-tail-buffer.ts';
import { type CommandResult, type OutputStream, runCommand } from '../process/run-command.ts';
import { runSandboxed } from '../sandbox/run-sandboxed.ts';
import { locate } from './confine.ts';
import { expandBraces } from './glob.ts';
import { maxLinesBytes, type OwnTool, type ToolContext, type ToolResult } from './port.ts';

interface LineSearch {
  readonly argv: readonly [string, ...string[]];
  readonly context: ToolContext;
  readonly maxLines: number;
  readonly maxLineLength: number;
}

export interface FoundLines {
  readonly lines: readonly string[];
  readonly more: boolean;
  readonly stderr: string;
  readonly result: CommandResult;
}

export const searchTimeoutMs = 20_000;
const maxStderrLength = 2_000;

/**
 * Collects up to `maxLines` lines, each cut at `maxLength`; calls `onEnough` when there are more.
 */
const createLineCollector = (maxLines: number, maxLength: number, onEnough: () => void) => {
  const lines: string[] = [];
  let pending = '';
  let more = false;

  const endLine = () => {
    if (lines.length === maxLines) more = true;
    else lines.push(pending.length > maxLength ? `${pending.slice(0, maxLength)}…` : pending);
    pending = '';
    if (more) onEnough();
  };
  const push = (text: string) => {
    if (more) return;
    const [first = '', ...rest] = text.split('\n');
    const extend = (part: string) => {
      pending = (pending + part).slice(0, maxLength + 1);
    };
    extend(first);
    for (const part of rest) {
      if (more) return;
      endLine();
      extend(part);
    }
  };
  const end = () => {
    if (pending !== '' && !more) endLine();
    return { lines, more };
  };
  return { push, end };
};

/**
 * Runs a search command, keeps the first lines of its output and ends it as soon as there are more.
 * The sandbox keeps a folder that is swapped for a symlink from leading out, and limits the memory
 * of a pattern. Where there is no sandbox the command runs without it, since it is our own.
 */
export const searchLines = async (search: LineSearch): Promise<FoundLines> => {
  const { argv, context, maxLines, maxLineLength } = search;
  const enough = new AbortController();
  const lines = createLineCollector(maxLines, maxLineLength, () => enough.abort());
  let stderr = '';
  const onOutput = (text: string, stream: OutputStream) => {
    if (stream === 'stdout') lines.push(text);
    else stderr = (stderr + text).slice(0, maxStderrLength);
  };

  const signal = AbortSignal.any([context.signal, enough.signal]);
  const bounds = { timeoutMs: searchTimeoutMs, signal, onOutput, headBytes: 0, tailBytes: 0 };
  const { root, readable, git, env, sandbox } = context;
  const confined = await runSandboxed(sandbox, {
    argv,
    root,
    readable,
    git,
    env,
    readOnly: true,
    network: false,
    ...bounds,
  });
  const result =
    'refusal' in confined ? await runCommand({ argv, cwd: root, env, ...bounds }) : confined;
  return { ...lines.end(), stderr: stderr.trim(), result };
};

/** The reason why a search has no result: cancelled, not started or refused; else null. */
export const searchFailure = (
  { lines, more, stderr, result }: FoundLines,
  worstExit: number,
): string | null => {
  if (result.aborted && !more) return 'cancelled';
  if (result.timedOut || more || lines.length > 0) return null;
  if (result.exitCode === null) return result.output;
  return result.exitCode > worstExit
    ? stderr || `the search ended with exit code ${result.exitCode}`
    : null;
};

const maxMatches = 100;
const maxLineLength = 500;

const grepArguments = z.strictObject({
  pattern: z
    .string()
    .min(1)
    .max(10_000)
    .describe('an extended regular expression (grep -E), searched line by line'),
  path: z
    .string()
    .min(1)
    .default('.')
    .describe('file or folder to search, relative to the workspace root'),
  glob: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .describe('only files whose name matches, such as *.ts'),
});

const grepNote = ({ more, result }: FoundLines, shown: number): string => {
  if (result.timedOut)
    return `\n[stopped after ${searchTimeoutMs / 1_000} s with ${shown} matches; search a smaller folder]`;
  return more ? `\n[only the first ${shown} matches; make the pattern or the path narrower]` : '';
};

const grepResult = (found: FoundLines): ToolResult => {
  const failure = searchFailure(found, 1);
  if (failure !== null) return { ok: false, text: failure };
  if (found.lines.length === 0 && !found.result.timedOut) return { ok: true, text: 'no matches' };

  const lines = found.lines.map((line) => line.replace(/^\.\//, ''));
  const { text, count } = keepWholeLines(lines, maxLinesBytes);
  const note = grepNote({ ...found, more: found.more || count < lines.length }, count);
  return { ok: !found.result.timedOut, text: `${text}${note}` };
};

/** A child process runs the pattern of the model, so that a slow one cannot block our thread. */
export const grepTool: OwnTool<z.infer<typeof grepArguments>> = {
  name: 'grep',
  files: 'reads',
  isRepeatable: true,
  description: `Searches the contents of text files and returns path:line:text, at most ${maxMatches} matches. Skips .git and node_modules.`,
  schema: grepArguments,
  run: async ({ pattern, path, glob }, context) => {
    const place = await locate(context.root, path, 'read');
    if (!place.ok) return place;
    const includes = glob === undefined ? [] : expandBraces(glob).map((one) => `--include=${one}`);
    const skips = ['--exclude-dir=.git', '--exclude-dir=node_modules', '--devices=skip'];
    return grepResult(
      await searchLines({
        argv: ['grep', '-rnHIEs', ...skips, ...includes, '-e', pattern, '--', place.value.path],
        context,

        maxLines: maxMatches,
        maxLineLength,
      }),
    );
  },
};
