import { z } from 'zod';

/** The roles of Spec 1.7, in the order in which they are listed to people. */
export const roles = ['engineer', 'tester', 'reviewer', 'architect', 'product-manager'] as const;
export const roleSchema = z.enum(roles);
export type Role = z.infer<typeof roleSchema>;

/** The tracker's id of a task; the one id space of the service (CONTRACT 1). */
export type TaskId = string & { readonly brand: 'TaskId' };

const idPattern = /^[A-Za-z0-9][A-Za-z0-9_+.-]*-[A-Za-z0-9]+(\.\d+)*$/;
const maxIdLength = 128;

/** A well-formed id of any tracker's prefix, or null. Never a leading dash, a path or an empty string. */
export const parseTaskId = (text: string): TaskId | null =>
  text.length <= maxIdLength && idPattern.test(text) && !text.includes('..') ? (text as TaskId) : null;

/** One attempt of a task, for keys of actors, files and fences: `bd-a1b2#1`. */
export type AttemptKey = `${string}#${number}`;
export const attemptKey = (taskId: TaskId, attempt: number): AttemptKey => `${taskId}#${attempt}`;

/** Totals of an attempt. Its keys are those of the journal and of saved snapshots. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  /** Input tokens that the provider had cached. */
  readonly cached_tokens: number;
  readonly model_calls: number;
  readonly tool_calls: number;
  readonly turns: number;
  /** Absent where the price is unknown. */
  readonly cost_usd?: number;
}
export const noUsage: Usage = {
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  model_calls: 0,
  tool_calls: 0,
  turns: 0,
};

/** What the caller of a run may set (CONTRACT 3, `execute`); absent means the configured default. */
export interface RunOptions {
  readonly model?: string;
  readonly timeoutMs?: number;
  readonly maxTurns?: number;
  readonly maxTokensTotal?: number;
  readonly maxCostUsd?: number;
  /** Commands that must succeed before the task may complete. */
  readonly verify?: readonly string[];
  /** Whether commands may reach the network; on only where the configuration leaves it to the caller. */
  readonly network?: boolean;
}

/** What a look around found before a run: the facts behind the guards from `taskExists` to `modelCanBeCalled`. */
export interface Finding {
  readonly exists: boolean;
  readonly unmet: readonly TaskId[];
  /** Who holds the task in the tracker, when that is not this service, or null. */
  readonly holder: string | null;
  /** The variable that would hold the missing credential of the model, or null when the model can be called. */
  readonly missingCredential: string | null;
  /** Why the assistant that was asked for cannot be used. */
  readonly assistantProblem?: string;
}

export const failureCodes = [
  'budget_exceeded',
  'timed_out',
  'loop_detected',
  'model_failed',
  'tool_failed',
  'verify_failed',
  'output_truncated',
  'internal',
] as const;

/** Why an attempt failed (CONTRACT 4, last rows); `retryable` failures may be tried again without a person. */
export interface Failure {
  readonly code: (typeof failureCodes)[number];
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly retryable: boolean;
}

/** How an attempt ended. */
export type AttemptOutcome =
  | { readonly status: 'done'; readonly summary: string; readonly artifacts: readonly string[]; readonly usage: Usage }
  | { readonly status: 'failed'; readonly failure: Failure; readonly usage: Usage };

/** Puts the time of the event, in epoch ms, on every event: time is an input of the machines (DESIGN 3.4). */
export type Stamped<Event> = Event & { readonly at: number };
