import { type CommandResult, type OutputStream, runCommand } from '../process/run-command.ts';
import { runConfined } from '../sandbox/run-sandboxed.ts';
import type { ToolContext } from './port.ts';

export interface LineSearch {
  /** Run in the root of the workspace. */
  readonly argv: readonly [string, ...string[]];
  readonly context: ToolContext;
  readonly timeoutMs: number;
  readonly maxLines: number;
  readonly maxLineLength: number;
}

export interface FoundLines {
  readonly lines: readonly string[];
  /** True when there was more than `maxLines`; the command was then ended. */
  readonly more: boolean;
  /** What the command said on its error stream. */
  readonly complaint: string;
  readonly result: CommandResult;
}

const maxComplaintLength = 2_000;

/** Cuts a stream into lines, keeps the first part of each, and says when there are more than enough. */
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
 * Runs a search command and keeps the first lines of its output; ends it as soon as there are more. In the sandbox, where no
 * folder that is swapped for a link meanwhile leads out, and a pattern has no more memory than a command; where there is no
 * sandbox without it, for these are our own commands.
 */
export const searchLines = async (search: LineSearch): Promise<FoundLines> => {
  const { argv, context, timeoutMs, maxLines, maxLineLength } = search;
  const enough = new AbortController();
  const lines = createLineCollector(maxLines, maxLineLength, () => enough.abort());
  let complaint = '';
  const onOutput = (text: string, stream: OutputStream) => {
    if (stream === 'stdout') lines.push(text);
    else complaint = (complaint + text).slice(0, maxComplaintLength);
  };

  const signal = AbortSignal.any([context.signal, enough.signal]);
  const bounds = { timeoutMs, signal, onOutput, headBytes: 0, tailBytes: 0 };
  const { root, readable, git, env, sandbox } = context;
  const held = await runConfined(sandbox, { argv, root, readable, git, env, readOnly: true, ...bounds });
  const result = 'refusal' in held ? await runCommand({ argv, cwd: root, env, ...bounds }) : held;
  return { ...lines.end(), complaint: complaint.trim(), result };
};

/** Why a search has no answer at all, or null: cancelled, not started, or refused by the command. */
export const searchFailure = ({ lines, more, complaint, result }: FoundLines, worstExit: number): string | null => {
  if (result.aborted && !more) return 'cancelled';
  if (result.timedOut || more || lines.length > 0) return null;
  if (result.exitCode === null) return result.output;
  return result.exitCode > worstExit ? complaint || `the search ended with exit code ${result.exitCode}` : null;
};
