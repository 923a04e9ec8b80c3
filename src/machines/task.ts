import type { CommentAnswer, ReviewedWork } from './review.ts';

/** In display order. */
export const roles = ['engineer', 'tester', 'reviewer', 'architect', 'product-manager'] as const;
export type Role = (typeof roles)[number];

export const forEachRole = <Value>(make: (role: Role) => Value): Readonly<Record<Role, Value>> => ({
  engineer: make('engineer'),
  tester: make('tester'),
  reviewer: make('reviewer'),
  architect: make('architect'),
  'product-manager': make('product-manager'),
});

/** A tracker may have others. */
export const statuses = ['queued', 'started', 'complete', 'failed', 'cancelled'] as const;

/** An agent or a person ended the task; only a person opens it again. */
export const finalStatuses: ReadonlySet<string> = new Set(['complete', 'failed', 'cancelled']);

/** The tracker's id of a task, the only ids of the service. */
export type TaskId = string & { readonly brand: 'TaskId' };

const idPattern = /^[A-Za-z0-9][A-Za-z0-9_+.-]*-[A-Za-z0-9]+(\.\d+)*$/;
const maxIdLength = 128;

/** Null for a malformed id: a leading dash, a path, too long. */
export const parseTaskId = (text: string): TaskId | null =>
  text.length <= maxIdLength && idPattern.test(text) && !text.includes('..')
    ? (text as TaskId)
    : null;

/** Names an attempt in keys of actors, files and fences: `bd-a1b2#1`. */
export type AttemptKey = `${string}#${number}`;
export const attemptKey = (taskId: TaskId, attempt: number): AttemptKey => `${taskId}#${attempt}`;

/** Totals of an attempt. The keys are those of the journal and of saved snapshots. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens: number;
  /** Part of the input, as the cached ones are; absent where none. */
  readonly cache_write_tokens?: number;
  readonly model_calls: number;
  readonly tool_calls: number;
  readonly turns: number;
  /** The agent does not tell its tokens: the counts are too low. */
  readonly tokens_unknown?: true;
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

/** Absent: the configured default. */
export interface RunOptions {
  readonly model?: string;
  readonly timeoutMs?: number;
  readonly maxTurns?: number;
  readonly maxTokensTotal?: number;
  readonly maxCostUsd?: number;
  /** `ready`: a run with unmet dependencies waits for them; `now`: it is refused. Default: `now`. */
  readonly when?: 'now' | 'ready';
  /** Commands that must succeed before completion. */
  readonly verify?: readonly string[];
  /** Commands may reach the network, where the configuration allows it. */
  readonly network?: boolean;
  /** Its work is published when it is complete. */
  readonly publish?: boolean;
  /** The request that it counts for: of one task, or of many. */
  readonly run?: RunOfTasks;
}

export interface RunOfTasks {
  /** Begins with its date. */
  readonly id: string;
  /** In place of `budget.run_usd`. */
  readonly maxCostUsd?: number;
}

export interface AttemptInput {
  readonly taskId: TaskId;
  readonly attempt: number;
  readonly role: Role;
  readonly options: RunOptions;
  readonly review?: ReviewedWork;
}

/** `problem`: what the folder is, as in `is your home folder`. */
export type ProjectProblem = {
  readonly path: string;
  readonly problem: string;
  readonly remedy: string;
};

/** Facts for the guards of a run, looked up before it. */
export interface Finding {
  readonly exists: boolean;
  readonly unmet: readonly TaskId[];
  /** The holder in the tracker, when it is not this service; else null. */
  readonly holder: string | null;
  /** The name of the unset variable; null when the model can be called. */
  readonly missingCredential: string | null;
  readonly assistantProblem?: string;
  readonly credentialRemedy?: string;
  /** Why no attempt can begin in this project; null or absent: one can. */
  readonly projectProblem?: ProjectProblem | null;
  /** The budget that keeps a paid run from its next model call; null or absent: none does. */
  readonly usedBudget?: Parking | null;
}

export const failureCodes = [
  'budget_exceeded',
  'timed_out',
  'loop_detected',
  'model_failed',
  'tool_failed',
  'verify_failed',
  'output_truncated',
  'crash_loop',
  'internal',
] as const;

/** Why an attempt failed. A `retryable` failure may be retried without a person. */
export interface Failure {
  readonly code: (typeof failureCodes)[number];
  readonly message: string;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly retryable: boolean;
}

export const failureOf = (
  code: Failure['code'],
  message: string,
  facts: Failure['facts'] = {},
): Failure => ({
  code,
  message,
  facts,
  retryable: false,
});

/**
 * A limit of the provider holds up every task of a backend until `until` (epoch ms), or a budget
 * those that count for it.
 */
export interface Parking {
  /** Epoch ms. */
  readonly since: number;
  readonly until: number;
  readonly reason: string;
  readonly backend: string;
  readonly budget?: 'run' | 'day' | 'month';
}

/** What `limit.ended` names: the backend, or `budget` for every budget. */
export const limitNameOf = ({ backend, budget }: Pick<Parking, 'backend' | 'budget'>): string =>
  budget === undefined ? backend : 'budget';

/** Messages that no agent could read yet. They are counted, so that each is given once. */
export interface KeptMessages {
  /** The number of those before. */
  readonly before: number;
  readonly texts: readonly string[];
}

export type AttemptOutcome = {
  readonly usage: Usage;
  /** How long it waited for persons (ms); absent when it never did. */
  readonly waitedMs?: number;
  /** Messages of people that the task kept and the agent took, counted from the first. */
  readonly heard?: number;
  /** Messages that the agent did not read; absent when there are none. */
  readonly unread?: readonly string[];
} & (
  | {
      readonly status: 'done';
      readonly summary: string;
      readonly artifacts: readonly string[];
      readonly answers?: readonly CommentAnswer[];
    }
  | { readonly status: 'failed'; readonly failure: Failure }
  /** Not over: it goes on after `parking.until`. */
  | { readonly status: 'parked'; readonly parking: Parking }
);

/**
 * Adds the time of the event in epoch ms: machines get the time as input, so that a replay repeats
 * it.
 */
export type Stamped<Event> = Event & { readonly at: number };
