/** One line of the journal: what was committed, in the order in which it was committed. */
export interface Entry {
  /** Strictly rising over the whole server; the id of the SSE frame. */
  readonly seq: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly type: string;
  /** Epoch ms. */
  readonly at: number;
  /** JSON text of the frame's `data`. */
  readonly data: string;
  /** For a transition: JSON text of the machine event that caused it, never streamed. */
  readonly cause: string | null;
}
export type NewEntry = Omit<Entry, 'seq'>;

/** The state of an actor as it was last committed. */
export interface SavedActor {
  /** `bd-a1b2` for a task, `bd-a1b2#1` for the agent of its first attempt. */
  readonly id: string;
  readonly taskId: string;
  /** Version of the chart that wrote it. */
  readonly version: number;
  /** Whether something must still happen by itself. */
  readonly pending: boolean;
  readonly changedAt: number;
  /** JSON text of the persisted XState snapshot. */
  readonly snapshot: string;
}

/** One thing that an attempt does once: what it is about to do, and what came of it. */
export interface Step {
  readonly taskId: string;
  readonly attempt: number;
  /** Unique within the attempt, and the same in every process: `think:1`, `act:1:call_7`. */
  readonly key: string;
  /** JSON text. */
  readonly intent: string;
  /** JSON text; null while nobody knows. */
  readonly result: string | null;
}

/** What becomes durable together, or not at all. */
export interface Change {
  readonly actor?: SavedActor;
  readonly entries: readonly NewEntry[];
  /** Begun, or ended with its result. */
  readonly step?: Step;
  /** The steps of an attempt that is over, and of those before it, are no longer needed. */
  readonly forgetSteps?: { readonly taskId: string; readonly attempt: number };
  /** Remembers that this request led to this task, so that it is never carried out twice. */
  readonly request?: { readonly id: string; readonly taskId: string };
}

export interface ReadOptions {
  readonly taskId?: string;
  /** Only entries with a higher seq. */
  readonly after: number;
  readonly limit: number;
}

/** The journal could not be written; the message names the cause and may be shown. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}

/**
 * Attempts, journal and snapshots (DESIGN 3.1). A change is durable when `commit` returns; readers see nothing else.
 * Synchronous, so that a transition can be committed before its effects start (ADR 0002).
 */
export interface Store {
  /**
   * Several changes become durable together, in their order.
   * @returns the entries with their seq
   * @throws StoreError when the changes could not be made durable; nothing of them is kept
   */
  commit(...changes: readonly Change[]): readonly Entry[];
  read(options: ReadOptions): readonly Entry[];
  /** The newest entry of a type for a task, or null. */
  latest(taskId: string, type: string): Entry | null;
  /** The seqs, rising, of the newest entry of a type for each task that is pending. */
  latestOfPending(type: string): readonly number[];
  /** The highest seq, or 0. */
  lastSeq(): number;
  actor(id: string): SavedActor | null;
  /** The steps of an attempt in the order in which they began. */
  steps(taskId: string, attempt: number): readonly Step[];
  /** The task actors (not their agents), all or only the pending ones. */
  tasks(filter: 'all' | 'pending'): readonly SavedActor[];
  /** The task that a request led to, and the answer that it got, if that was remembered. */
  request(id: string): { readonly taskId: string; readonly answer: string | null } | null;
  rememberAnswer(requestId: string, answer: string): void;
  /** Whether it can be written now, in one sentence. Never throws. */
  check(): { readonly ok: boolean; readonly detail: string };
  close(): void;
}
