import type { Refusal } from './errors.ts';
import type { AttemptOutcome, Failure, Finding, Role, RunOptions, Stamped, TaskId } from './task.ts';

/** Everything the service remembers of a task besides what the tracker holds. JSON, so that it persists. */
export interface TaskContext {
  readonly taskId: TaskId;
  readonly role: Role | null;
  readonly options: RunOptions;
  /** How many attempts have begun. */
  readonly attempt: number;
  /** How often a retryable failure may still be followed by another attempt without a person. */
  readonly retriesLeft: number;
  readonly finding: Finding | null;
  /** Why the last request was refused. */
  readonly refusal: Refusal | null;
  readonly outcome: AttemptOutcome | null;
  /** What the work was sent back with, and how often it was. */
  readonly feedback: { readonly round: number; readonly text: string } | null;
  readonly failure: Failure | null;
  readonly reason: string | null;
  /** Why a person reopened or retried it; absent when nobody said why. */
  readonly requestReason?: string | undefined;
  /** When the task asked for a slot: its place in the queue (epoch ms). */
  readonly submittedAt: number | null;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  /** Since when the tracker has not answered what this task must tell it (epoch ms), and how often it was asked. */
  readonly trackerAwaySince: number | null;
  readonly trackerTries: number;
  /** When the present state must be left at the latest (epoch ms). */
  readonly deadlineAt: number | null;
}

export interface TaskInput {
  readonly taskId: TaskId;
}

/** What the tracker says of a task that no attempt of ours holds. */
export type ObservedStatus = 'open' | 'complete' | 'failed' | 'cancelled' | 'elsewhere';

/** What people and programs may ask of a task. */
export type TaskCommand =
  | { readonly type: 'run'; readonly role: Role; readonly options: RunOptions; readonly maxRetries: number }
  | {
      readonly type: 'retry';
      readonly role: Role | null;
      readonly options: RunOptions | null;
      readonly maxRetries: number;
      readonly reason: string | null;
    }
  | { readonly type: 'close'; readonly reason: string | null }
  | { readonly type: 'reopen'; readonly reason: string | null }
  | { readonly type: 'cancel'; readonly reason: string | null };

export type TaskEvent = Stamped<
  | TaskCommand
  /** `holder` is who has it now, when that is not this service. */
  | { readonly type: 'tracker.observed'; readonly status: ObservedStatus; readonly holder?: string | null }
  /** A task that this one depends on has failed, and nobody will run this one because of it. */
  | { readonly type: 'dependency.failed'; readonly dependency: TaskId; readonly why: string }
  /** `agentHasTime`: the agent of the attempt has not come to the end of its own time. */
  | { readonly type: 'DEADLINE'; readonly agentHasTime?: boolean }
>;

/** The answer of work that a guard of the outside world may refuse. */
export type Verdict = { readonly refusal: Refusal | null };

export interface AttemptInput {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly role: Role;
  readonly options: RunOptions;
}
