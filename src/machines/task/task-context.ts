import type { Tell } from '../agent/agent-context.ts';
import type { Refusal } from '../errors.ts';
import type { Review, ReviewCommand } from '../review.ts';
import type {
  AttemptOutcome,
  Failure,
  Finding,
  KeptMessages,
  Parking,
  Role,
  RunOptions,
  Stamped,
  TaskId,
  Usage,
} from '../task.ts';

/** The state of a task, in addition to the tracker's. JSON, so that it persists. */
export interface TaskContext {
  readonly taskId: TaskId;
  readonly role: Role | null;
  readonly options: RunOptions;
  readonly attempt: number;
  /** Automatic attempts that may still follow a retryable failure. */
  readonly retriesLeft: number;
  readonly finding: Finding | null;
  readonly refusal: Refusal | null;
  readonly outcome: AttemptOutcome | null;
  /** What calls cost that were cut with the agent; absent where none was. */
  readonly cut?: Usage;
  /** Set from a limit of the provider until the attempt goes on, or ends. */
  readonly parked?: Parked;
  /** Time for which the attempt was parked (ms). */
  readonly parkedMs?: number;
  /** Output of the failed check, and how often the work was returned. */
  readonly feedback: { readonly round: number; readonly text: string } | null;
  readonly failure: Failure | null;
  /** True when somebody closed it, although its outcome is done. */
  readonly byHand?: boolean;
  readonly reason: string | null;
  /** Who asked for its attempts, by the names of their tokens. */
  readonly runBy?: readonly string[] | undefined;
  /** The reason of a reopen or retry, if one was given. */
  readonly requestReason?: string;
  /** True for a run that waits, or waited, for its dependencies: a later problem only delays it. */
  readonly accepted?: boolean;
  /** Messages to its agent that no agent has read. */
  readonly kept?: KeptMessages;
  /** What people said about its work; absent before the first review. */
  readonly review?: Review;
  /** Time of the request (epoch ms): its rank in the queue. */
  readonly submittedAt: number | null;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  /** Start of a tracker outage that delays this task (epoch ms), and the tries since. */
  readonly trackerAwaySince: number | null;
  readonly trackerTries: number;
  /** Deadline of the present state (epoch ms). */
  readonly deadlineAt: number | null;
}

export interface Parked extends Parking {
  /** False for a task that waits for the limit before its attempt begins. */
  readonly hasBegun: boolean;
  /** A person asked to try before `until`. */
  readonly triesNow: boolean;
}

export interface TaskInput {
  readonly taskId: TaskId;
}

/** The tracker's status of a task without a live attempt. */
export type ObservedStatus = 'open' | 'complete' | 'failed' | 'cancelled' | 'elsewhere';

export type TaskCommand =
  | {
      readonly type: 'run';
      readonly role: Role;
      readonly options: RunOptions;
      readonly maxRetries: number;
      readonly by?: string | undefined;
    }
  | {
      readonly type: 'retry';
      readonly role: Role | null;
      readonly options: RunOptions | null;
      readonly maxRetries: number;
      readonly reason: string | null;
      readonly by?: string | undefined;
    }
  | ReviewCommand
  | { readonly type: 'close'; readonly reason: string | null }
  | { readonly type: 'reopen'; readonly reason: string | null }
  | { readonly type: 'cancel'; readonly reason: string | null };

/** A dependency that ended without success. */
export interface EndedDependency {
  readonly dependency: TaskId;
  readonly status: 'failed' | 'cancelled';
  /** Empty when nobody said why. */
  readonly why: string;
}

export type TaskEvent = Stamped<
  | TaskCommand
  /** For the agent of this attempt or the next one, when none can read it now. */
  | Tell
  /** `holder`: the present one, when it is not this service. */
  | {
      readonly type: 'tracker.observed';
      readonly status: ObservedStatus;
      readonly holder?: string | null;
    }
  /** A dependency failed or was cancelled, so this task fails without a run. */
  | ({ readonly type: 'dependency.failed' } & EndedDependency)
  /** The provider answered again before the limit of this backend was over; or a budget was raised. */
  | { readonly type: 'limit.ended'; readonly backend: string }
  /** The attempt was restored as often without getting on: it may be what ends its servers. */
  | { readonly type: 'restores.spent'; readonly restores: number }
  /** `agentHasTime`: the agent's own deadline has not passed. */
  | { readonly type: 'DEADLINE'; readonly agentHasTime?: boolean }
>;

export type Acceptance = { readonly refusal: Refusal | null };

/** Null: no call was cut. */
export type Cut = { readonly cut: Usage | null };
