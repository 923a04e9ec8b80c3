import type { ImageData, ImageFacts } from '../files/image.ts';

export interface Entry {
  /** Rises with each commit of the server; id of the SSE frame. */
  readonly seq: number;
  readonly taskId: string;
  /** Its number among the entries of its task: 1, 2, 3, without a gap. */
  readonly taskSeq: number;
  readonly attempt: number;
  readonly type: string;
  /** Epoch ms. */
  readonly at: number;
  /** JSON text of the frame's `data`. */
  readonly data: string;
  /** JSON text of the event that caused a transition, else null; never streamed. */
  readonly cause: string | null;
}
export type NewEntry = Omit<Entry, 'seq' | 'taskSeq'>;

/** An entry as it is kept: with the hashes by which `hashOfEntry` proves it. */
export interface KeptEntry extends Entry {
  /** `data` lacks the fields that are as in the entry with this seq. */
  readonly base: number | null;
  /** Hash of the task's previous entry, empty for the first; null in an entry of version 2.1. */
  readonly previous: string | null;
  readonly hash: string | null;
}

export interface ActorState {
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
  /** Set while a task waits for a slot: another server may take it. */
  readonly waits?: { readonly role: string; readonly priority: number };
}

export interface SavedActor extends ActorState {
  /** The start of a server that has this pending task; null: none. */
  readonly owner: string | null;
  /** Rises by one with each commit of the actor. */
  readonly revision: number;
  /** How often `countRestores` counted its live attempt; `StoreLeases` says since when. */
  readonly restores: number;
}

/** The state that a transition started from. */
export interface Guard {
  /** Revision of the saved actor; 0 when nothing is saved. */
  readonly revision: number;
  /**
   * For a task, its live attempt after the change, 0 when none is. For an agent, its attempt, which
   * must be the live one. The server that commits a pending task has it from then on; when another
   * one has it, the change is stale.
   */
  readonly attempt: number;
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

/** A task of a project without bd, as it becomes. */
export interface TaskEdit {
  readonly id: string;
  /**
   * The revision of the task that it was made from; null for a new one. With another one, the whole
   * change is stale.
   */
  readonly revision: number | null;
  /** The task in bd's form; null removes it. */
  readonly line: string | null;
  /** The line that the file holds now; absent: as before. */
  readonly base?: string;
}

export interface CommitId {
  /** The id of one start of a server. */
  readonly node: string;
  /** Rises with each commit of the node. */
  readonly number: number;
  /** The last number of the node that was answered; the store has it, or it lost what it had. */
  readonly answered?: number;
}

export interface Change {
  /**
   * Names the whole commit, so that it is carried out once, however often it comes: the last one
   * of its node is answered as before, and an earlier one is too late, so all of it is stale.
   */
  readonly commit?: CommitId;
  readonly actor?: ActorState;
  /** When it does not hold, the whole change is stale. */
  readonly guard?: Guard;
  readonly entries: readonly NewEntry[];
  /**
   * The saved actor that the entries were made from; revision 0: none was saved. With another
   * revision, the whole change is stale.
   */
  readonly unchanged?: { readonly id: string; readonly revision: number };
  readonly tasks?: readonly TaskEdit[];
  /** A result stays when the step is written again without one. */
  readonly step?: Step;
  /** Deletes the steps of this and earlier attempts, but `folder`: it says where their work is. */
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

export interface Subscription {
  /** Absent: every task. */
  readonly taskId?: string;
  /** Only entries with a higher seq, beginning with those of before; absent: from now on. */
  readonly after?: number;
}

export interface EntryListener {
  /** While its promise is pending it gets no more, and the store keeps nothing for it. */
  entries(entries: readonly Entry[]): void | Promise<void>;
  /** Called once with `after`: everything of before was given. */
  caughtUp?(): void;
  /** It threw, or the journal cannot be read. It gets no more; `last` is the last seq that it was given. */
  failed(error: unknown, last: number): void;
}

/** `stale`: what is saved is not what the change started from. */
export type CommitAnswer = 'ok' | 'stale';

export interface Committed {
  readonly entries: readonly Entry[];
  /**
   * Changes whose guard did not hold, and later ones that go on from them: nothing of them is
   * saved.
   */
  readonly stale: readonly Change[];
}

/** The part of a journal that was removed because it was old. */
export interface RemovedHistory {
  /** Its last entry. */
  readonly seq: number;
  /** Epoch ms. */
  readonly at: number;
  /** The age in days from which a history is removed. */
  readonly days: number;
}

/** Sums over all entries that were ever committed. */
export interface Counters {
  readonly spawned: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly callsTotal: number;
  readonly callsFailed: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  /** Completed tasks that an agent worked on, and the sum of their times. */
  readonly executed: number;
  readonly executionSeconds: number;
  /** Rows of the histograms; `histogramOf` reads them. */
  readonly durations: Readonly<Record<string, number>>;
}

export interface UsageSums {
  readonly seconds: number;
  readonly model_calls: number;
  readonly tool_calls: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens: number;
  readonly cache_write_tokens?: number;
  /** Absent where no price was known. */
  readonly cost_usd?: number;
}

/** What model calls have cost so far, those of attempts that are not over too (USD). */
export interface SpentUsd {
  readonly runUsd: number;
  readonly dayUsd: number;
  readonly monthUsd: number;
}

/** Attempts of a role that ended on a day (UTC, `2026-11-22`). */
export interface UsageDay extends UsageSums {
  readonly day: string;
  readonly role: string;
  readonly attempts: number;
  readonly complete: number;
  readonly failed: number;
  readonly cancelled: number;
}

/** An attempt that is over. */
export interface AttemptUsage extends UsageSums {
  /** The start of a server that ran it to its end; null: of an earlier version. */
  readonly owner: string | null;
  readonly attempt: number;
  readonly role: string;
  /** `complete`, `failed` or `cancelled`. */
  readonly status: string;
  /** Epoch ms. */
  readonly endedAt: number;
}

/**
 * True when a change of `actor` goes on from another one: of the same actor, or an agent from its
 * task.
 */
export const goesOnFrom = (change: Change, actor: ActorState): boolean =>
  change.actor !== undefined && (change.actor.id === actor.id || change.actor.id === actor.taskId);

/** An answer at once, or of a store that is far away. */
export type Answer<Result> = Result | Promise<Result>;

/** The store failed. The message names the cause and may be shown. */
export class StoreError extends Error {
  override readonly name: string = 'StoreError';
}

/** A store on a network does not answer. Asked again, it may. */
export class StoreAwayError extends StoreError {
  override readonly name = 'StoreAwayError';
}

/** A store on a network refused a statement. */
export class DatabaseRefusedError extends StoreError {
  override readonly name: string = 'DatabaseRefusedError';
}

/** The database refuses the change itself, and would again: this is no outage. */
export class ChangeRefusedError extends DatabaseRefusedError {
  override readonly name = 'ChangeRefusedError';
}

/** Another program holds the lock under which the database is written. */
export class DatabaseHeldError extends StoreError {
  override readonly name = 'DatabaseHeldError';
  readonly file: string;
  readonly problem: string;
  readonly remedy = 'end that program, or try again when it is done';

  constructor(file: string, heldMs: number, options?: ErrorOptions) {
    const problem = `another program has kept the database ${file} locked for ${Math.round(heldMs / 1_000)} s`;
    super(`${problem}; end that program, or try again when it is done`, options);
    this.file = file;
    this.problem = problem;
  }
}

/**
 * The database is not the one that this process wrote: another one, or none, is in its place, or it
 * was restored to an earlier state. Nothing can be saved.
 */
export class DatabaseGoneError extends StoreError {
  override readonly name = 'DatabaseGoneError';
  readonly problem: string;
  readonly remedy =
    'start the server again, which takes newer tasks from .beads/issues.jsonl (a running one ends by itself)';

  constructor(problem: string, options?: ErrorOptions) {
    super(`${problem}; start the server again`, options);
    this.problem = problem;
  }
}

/** Another server has taken over the attempts of this one; it must end. */
export class LeaseLostError extends StoreError {
  override readonly name = 'LeaseLostError';

  constructor() {
    super('another server has taken over this project; nothing of this one is saved any more');
  }
}

/** A server that shares its store could not renew its lease in time. */
export class LeaseOverError extends StoreError {
  override readonly name = 'LeaseOverError';

  constructor(leaseMs: number) {
    super(
      `the store did not answer for ${Math.round(leaseMs / 1_000)} s (store.lease_seconds), so another server may have taken over the tasks of this one`,
    );
  }
}

/** A server goes on from states that these versions of the charts wrote; it writes the newest. */
export interface ChartVersions {
  readonly oldest: number;
  readonly newest: number;
}

export interface Lease {
  /** The id of one start of a server. */
  readonly node: string;
  /** The same at each start of a server; `*`: no other server runs, whatever its name. */
  readonly name: string;
  readonly leaseMs: number;
  readonly charts: ChartVersions;
  /** Shown to people. */
  readonly facts?: NodeFacts;
}

/** Facts of a server, for people. */
export interface NodeFacts {
  readonly version: string;
  /** Epoch ms. */
  readonly startedAt: number;
  /** The most agents that it runs at once. */
  readonly pool: number;
  /** Roles that it runs; null: all. */
  readonly roles: readonly string[] | null;
  /** It takes no more tasks, and ends after those that it runs. */
  readonly draining?: boolean;
  /** Absent: of a server before version 2.2. */
  readonly charts?: ChartVersions;
}

export interface StoreNode {
  readonly node: string;
  readonly name: string;
  readonly state: 'live' | 'silent' | 'left';
  /** Until its lease is over. */
  readonly leaseMs: number;
  /** It may run as many agents, of those that all servers share. */
  readonly slots: number;
  readonly facts: NodeFacts | null;
}

/**
 * Leases of servers. A commit by id renews its server's lease; after another one took over, it is
 * refused.
 */
export interface StoreLeases {
  /**
   * Begins a lease, and takes over the tasks of earlier starts with the same name, and those that no
   * server has, as far as it can go on from their states.
   */
  join(lease: Lease): Answer<void>;
  /**
   * Renews a lease, also after its time if nobody took over; replaces the facts that are given. @throws LeaseLostError, or
   * DatabaseGoneError when the store does not know the server; or rejects with it
   */
  renew(node: string, facts?: NodeFacts): Answer<void>;
  /**
   * Ends servers that have left, or also those whose lease is over. Takes over their tasks, and those
   * that no server has, as far as it can go on from their states. Slots of running attempts come with
   * them; until then, nobody gets these slots. @returns the tasks
   */
  takeOverFrom(
    node: string,
    servers: 'left' | 'leftOrSilent',
    charts: ChartVersions,
  ): Answer<readonly string[]>;
  /** Pending tasks, workflows and merge queues that no server has. */
  withoutServer(limit: number): Answer<readonly UnownedActor[]>;
  /** Servers that nobody has taken over from, the first to join first. */
  nodes(): Answer<readonly StoreNode[]>;
  /**
   * Counts, for tasks of this server, that their live attempt is restored after its server died. The
   * count begins again with each attempt, when a step gets its result, and when the server leaves.
   * @returns the counts by task
   */
  countRestores(node: string, taskIds: readonly string[]): Answer<ReadonlyMap<string, number>>;
  /** The count of a task begins again: its attempt was restored, and its server lives. */
  forgetRestores(taskId: string): Answer<void>;
  /** Ends its own lease, so that another server need not wait. */
  leave(node: string): Answer<void>;
}

/** A pending actor that no server has, since none that runs can go on from its state. */
export type UnownedActor = Pick<SavedActor, 'taskId' | 'version'>;

/** A wish of a server for slots, of those that all servers share. */
export interface SlotWish {
  /** The most agents of all servers. */
  readonly cap: number;
  /** The most agents of this server. */
  readonly pool: number;
  /** Slots that it does not give back now. */
  readonly keep: number;
  readonly needed: number;
  /** Tasks whose attempts count in `keep`, or whose slots are lent. */
  readonly held: readonly string[];
  /** Tasks that another server may take. */
  readonly waiting: number;
  /** The roles that it runs. */
  readonly roles: readonly string[];
  readonly charts: ChartVersions;
}

export interface SlotShare {
  /** What the server has from now on: at least `keep`. */
  readonly slots: number;
  /**
   * What it should have: it gives no slot to a further task while it has as many. Attempts that it was
   * given with their slots and does not hold yet are not in it.
   */
  readonly aim: number;
  /** Another server has fewer slots than it could use. */
  readonly isWanted: boolean;
  /** Another server has tasks that wait for a slot. */
  readonly othersWait: boolean;
  /** Another server does not run all roles. */
  readonly othersChoose: boolean;
  /** As many tasks wait at servers that do not run them, and this one does. */
  readonly foreign: number;
}

/** A task that a server took from another one. */
export interface TakenTask {
  readonly taskId: string;
  readonly from: string;
}

export interface NodeLoad {
  readonly node: string;
  readonly running: number;
  readonly waiting: number;
}

/** The slots and the waiting tasks of all servers. In every moment the slots of all are at most the cap. */
export interface StoreSharing {
  /** Attempts and waiting tasks of each server that has any. */
  loads(): Answer<readonly NodeLoad[]>;
  share(node: string, wish: SlotWish): Answer<SlotShare>;
  /** Takes tasks that wait for a slot at another server, the most urgent first. */
  takeWaiting(
    node: string,
    limit: number,
    able: Pick<SlotWish, 'roles' | 'charts'>,
  ): Answer<readonly TakenTask[]>;
}

export interface StoreWrites {
  /**
   * Commits the changes in their order, all that are not stale or none. They are durable when it
   * answers; it may answer later. After an error they may be saved or not. The first change may name
   * the commit; then it can be tried again, until the lease of its server is lost.
   * @throws StoreError, or rejects with it; DatabaseGoneError when an earlier commit is not there
   */
  commit(...changes: readonly Change[]): Answer<Committed>;
  /**
   * Reads a saved actor for a new actor. A commit of an earlier one that has not arrived is stale
   * from now on.
   */
  takeOver(id: string): Answer<SavedActor | null>;
}

export interface EntryReads {
  read(options: ReadOptions): Answer<readonly Entry[]>;
  /** As `read`. */
  kept(options: ReadOptions & { readonly taskId: string }): Answer<readonly KeptEntry[]>;
  latest(taskId: string, type: string): Answer<Entry | null>;
  /** Log entries of what people decided, the last one first. */
  decisions(limit: number): Answer<readonly Entry[]>;
  /** Seqs of the newest entry of a type of each pending task, rising. */
  latestOfPending(type: string): Answer<readonly number[]>;
  lastSeq(): Answer<number>;
  /**
   * Gives the listener every entry of the subscription, in the order of the journal, without a gap
   * and none twice, also those that other programs commit. Entries of a commit of this process come
   * when it answers, before its caller goes on, or later. @returns ends it
   */
  subscribe(listener: EntryListener, subscription?: Subscription): () => void;
  /**
   * The removed part of a task's journal; for null, the one with the highest seq. Null when nothing
   * was removed.
   */
  removed(taskId: string | null): Answer<RemovedHistory | null>;
}

export interface UsageReads {
  counters(): Answer<Counters>;
  /** Sums from a day on, by day and role. */
  usage(since: string): Answer<readonly UsageDay[]>;
  /** By a run (null: none), and by the whole store on a day and in its month (UTC). */
  spent(day: string, run: string | null): Answer<SpentUsd>;
  /** The attempts of a task that are over, in their order. */
  attempts(taskId: string): Answer<readonly AttemptUsage[]>;
}

/** The place of an ended actor among others; it does not change any more. */
export type EndedAt = Pick<SavedActor, 'id' | 'changedAt'>;

/** Names a chart beside those of tasks, and the type of its entries. */
export type HostedKind = 'workflow' | 'mergeQueue' | 'pullRequest' | 'source';

export interface ActorReads {
  actor(id: string): Answer<SavedActor | null>;
  /** Those that there are, in any order. */
  actors(ids: readonly string[]): Answer<readonly SavedActor[]>;
  /** Steps in the order in which they began. */
  steps(taskId: string, attempt: number): Answer<readonly Step[]>;
  /** Actors of tasks, without those of agents. */
  tasks(filter: 'all' | 'pending'): Answer<readonly SavedActor[]>;
  pendingCount(): Answer<number>;
  /** Pending tasks of a server, the last to change at the end. */
  pendingOf(node: string): Answer<readonly string[]>;
  /** Actors of a chart beside those of tasks that are not over, named `<kind>:<id>`. */
  openHosted(kind: HostedKind): Answer<readonly SavedActor[]>;
  /** Workflows that are over, the last to end first; `after`: the last one of the page before. */
  endedWorkflows(limit: number, after?: EndedAt): Answer<readonly SavedActor[]>;
}

export type StoreReads = EntryReads & UsageReads & ActorReads;

export interface RememberedRequest {
  readonly taskId: string;
  readonly answer: string | null;
}

export interface RequestAnswers {
  /** The task of a request, and its answer if there is one. */
  request(id: string): Answer<RememberedRequest | null>;
  /** @returns the answer that was remembered first, as it is kept: without secrets */
  rememberAnswer(requestId: string, taskId: string, answer: string): Answer<string>;
}

export interface StoreHealth {
  /** One sentence on whether it can be written. Never throws. */
  check(): Answer<{ readonly ok: boolean; readonly detail: string }>;
}

/** An image that a task is to have, by its digest. */
export interface NamedImage {
  readonly digest: string;
  readonly name: string;
}

/**
 * Images that people attach to tasks, and those that agents read. They are here, not in files: any
 * server of the store may run the task (ADR 0154).
 */
export interface Images {
  /** Keeps an image for at least an hour, in which it can be attached; the last 32. */
  upload(image: ImageData, bytes: number): Answer<void>;
  /** Those of these that can be attached. */
  uploaded(digests: readonly string[]): Answer<readonly ImageFacts[]>;
  /** Gives uploaded images to a task, in this order; one that it has stays as it is. */
  attach(taskId: string, images: readonly NamedImage[]): Answer<void>;
  /** Those that people attached, in their order. */
  attached(taskId: string): Answer<readonly ImageFacts[]>;
  /** @returns false when the attempt has read as many as it may */
  keepRead(taskId: string, attempt: number, image: ImageData, bytes: number): Answer<boolean>;
  /** Of a task: attached, or read by an attempt that is not over. */
  find(taskId: string, digest: string): Answer<ImageData | null>;
  /** Removes all images of a task. */
  forget(taskId: string): Answer<void>;
}

/**
 * Journal, actor states, steps and requests. Commits are carried out in the order in
 * which they were given.
 */
export type Store = StoreWrites &
  StoreLeases &
  StoreSharing &
  StoreReads &
  RequestAnswers &
  StoreHealth & { readonly images: Images; close(): void };
