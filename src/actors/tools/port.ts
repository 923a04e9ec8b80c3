import type { z } from 'zod';
import type { CommentAnswer } from '../../machines/review.ts';
import type { ImageData, ImageRef } from '../files/image.ts';
import { maxResultBytes } from '../process/head-tail-buffer.ts';
import type { OutputFile } from '../process/output-file.ts';
import type { Network, Sandbox, SandboxRequest } from '../sandbox/port.ts';

/** The limit for the lines of a result; the rest has room for the note after them. */
export const maxLinesBytes = maxResultBytes - 256;

export interface ToolContext {
  /** The ids of the comments that finish must answer. */
  readonly comments?: readonly number[];
  /** Absolute, symlinks resolved. No tool reads or writes outside. */
  readonly root: string;
  /** Further paths that commands may read. */
  readonly readable: readonly string[];
  /** The git directory that a sandbox mounts; absent when the folder has its own. */
  readonly git?: SandboxRequest['git'];
  /** True in an attempt's own folder: a person reviews its work before the merge. */
  readonly isOwn?: boolean;
  /** Paths below the root that no tool writes, beside the protected names. */
  readonly held?: readonly string[];
  readonly signal: AbortSignal;
  /** Streams output; the tool bounds it. */
  readonly emit: (chunk: string) => void;
  /** Keeps an image that the model is to see. @returns false when the attempt has read enough of them */
  readonly keepImage?: (image: ImageData, bytes: number) => Promise<boolean>;
  readonly openLog: (fromBytes: number) => OutputFile;
  readonly sandbox: Sandbox;
  /** Of commands. */
  readonly network: Network;
  /** The environment of child processes: an allow-list without secrets. */
  readonly env: Readonly<Record<string, string>>;
}

/** A tool's answer for the model. A failure is a result (`ok: false`), never an exception. */
export interface ToolResult {
  readonly ok: boolean;
  /** At most 16 KiB. */
  readonly text: string;
  /** Shown with the text. */
  readonly images?: readonly ImageRef[];
}

export interface Tool<Arguments = unknown> {
  readonly name: string;
  readonly description: string;
  readonly schema: z.ZodType<Arguments>;
  /** The JSON schema for the model; absent: made of `schema`. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  run(args: Arguments, context: ToolContext): Promise<ToolResult>;
}

/** A tool of ours. */
export interface OwnTool<Arguments = unknown> extends Tool<Arguments> {
  /**
   * The effect of a call on files. A call that `changes` them waits while another attempt works in the
   * same folder; neighbouring calls that `read` run at once.
   */
  readonly files: 'changes' | 'reads' | 'ignores';
  /** A second identical call does no more than the first, so a lost result is no loss. */
  readonly isRepeatable: boolean;
}

export interface Finish {
  readonly status: 'done' | 'failed';
  readonly summary: string;
  readonly artifacts: readonly string[];
  readonly answers: readonly CommentAnswer[];
}

export interface CallResult extends ToolResult {
  readonly callId: string;
  readonly tool: string;
  readonly durationMs: number;
  readonly finish: Finish | null;
  readonly question: string | null;
  /** True for an unknown tool or invalid arguments. */
  readonly malformed: boolean;
  /** Files with instructions of the project whose text the result ends with. */
  readonly instructions?: { readonly paths: readonly string[]; readonly bytes: number };
}
