import type { z } from 'zod';
import type { CommandLog } from '../process/output-file.ts';
import type { Sandbox, Wanted } from '../sandbox/port.ts';
import type { ToolName } from './names.ts';

/** What a tool gets besides its arguments. */
export interface ToolContext {
  /** Absolute, symlinks resolved: no tool reads or writes outside. */
  readonly root: string;
  /** Further paths that commands may read. */
  readonly readable: readonly string[];
  /** The git directory of its own git, where a sandbox mounts one; absent in a folder that has its own. */
  readonly git?: Wanted['git'];
  /** Whether the folder is the attempt's own: a person sees its work before programs obey it. */
  readonly isOwn?: boolean;
  readonly signal: AbortSignal;
  /** Output as it comes, already bounded by the tool. */
  readonly emit: (chunk: string) => void;
  /** Keeps the output of this call's command when it is more than so many bytes, for people and for later commands. */
  readonly openLog: (fromBytes: number) => CommandLog;
  /** What holds the commands that a tool runs. */
  readonly sandbox: Sandbox;
  /** The environment for child processes: an allow-list, no secrets. */
  readonly env: Readonly<Record<string, string>>;
}

/** A tool's answer for the model. A failure is a result (`ok: false`), never an exception. */
export interface ToolResult {
  readonly ok: boolean;
  /** At most 16 KiB. */
  readonly text: string;
}

export interface Tool<Arguments = unknown> {
  readonly name: ToolName;
  readonly description: string;
  readonly schema: z.ZodType<Arguments>;
  run(args: Arguments, context: ToolContext): Promise<ToolResult>;
}

/** The arguments of `finish`: completion is an act of the agent, not silence. */
export interface Finish {
  readonly status: 'done' | 'failed';
  readonly summary: string;
  readonly artifacts: readonly string[];
}

/** What one call did, in the order of the calls. */
export interface CallResult extends ToolResult {
  readonly callId: string;
  readonly tool: string;
  readonly durationMs: number;
  /** Set when the call was a valid `finish`. */
  readonly finish: Finish | null;
  /** Set when the call was a valid `ask`. */
  readonly question: string | null;
  /** Whether the call was none that could be made: an unknown tool, or arguments that are not JSON or of the wrong shape. */
  readonly malformed: boolean;
}
