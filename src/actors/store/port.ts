/** A committed entry of the journal. */
export interface Entry {
  /** Rises with each commit of the server; id of the SSE frame. */
  readonly seq: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly type: string;
  /** Epoch ms. */
  readonly at: number;
  /** JSON text of the frame's `data`. */
  readonly data: string;
  /** JSON text of the event that caused a transition, else null; never streamed. */
  readonly cause: string | null;
}
export type NewEntry = Omit<Entry, 'seq'>;

export interface SavedActor {
  /** `bd-a1b2` for a task, `bd-a1b2#1` for the agent of its first attempt. */
  readonly id: string;
  readonly taskId: string;
  /** Version of the machines that wrote it. */
  readonly version: number;
  /** True when the actor must run after a restart. */
  readonly pending: boolean;
  readonly changedAt: number;
  /** JSON text of the persisted XState snapshot. */
  readonly snapshot: string;
}

/** A model or tool call of an attempt: its intent and its result. */
export interface Step {
  readonly taskId: string;
  readonly attempt: number;
  /** Unique in the attempt and equal in every process: `think:1`, `act:1:call_7`. */
  readonly key: string;
  /** JSON text. */
  readonly intent: string;
  /** JSON text; null while unknown. */
  readonly result: string | null;
}

/** Committed in one transaction. */
export interface Change {
  readonly actor?: SavedActor;
  readonly entries: readonly NewEntry[];
  /** Runs first in the transaction, and gives entries that come before the others. Must not wait. */
  readonly also?: () => readonly NewEntry[];
  readonly step?: Step;
  /** Deletes the steps of this and earlier attempts. */
  readonly forgetSteps?: { readonly taskId: string; readonly attempt: number };
  /** Maps a request to its task, so that it is carried out once. */
  readonly request?: { readonly id: string; readonly taskId: string };
}

export interface ReadOptions {
  readonly taskId?: string;
  /** Only entries with a higher seq. */
  readonly after: number;
  readonly limit: number;
}

/** The store failed. The message names the cause and may be shown. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}

/**
 * Journal, actor states, steps and requests (DESIGN 3.1). A change is durable when `commit`
 * returns.
 */
export interface Store {
  /**
   * Commits the changes in their order, all or none.
   * @returns the entries with their seq
   * @throws StoreError
   */
  commit(...changes: readonly Change[]): readonly Entry[];
  read(options: ReadOptions): readonly Entry[];
  latest(taskId: string, type: string): Entry | null;
  /** Seqs of the newest entry of a type of each pending task, rising. */
  latestOfPending(type: string): readonly number[];
  lastSeq(): number;
  actor(id: string): SavedActor | null;
  /** In the order in which they began. */
  steps(taskId: string, attempt: number): readonly Step[];
  /** Actors of tasks, without those of agents. */
  tasks(filter: 'all' | 'pending'): readonly SavedActor[];
  /** The task of a request, and its answer if there is one. */
  request(id: string): { readonly taskId: string; readonly answer: string | null } | null;
  rememberAnswer(requestId: string, answer: string): void;
  /** One sentence on whether it can be written. Never throws. */
  check(): { readonly ok: boolean; readonly detail: string };
  close(): void;
}
