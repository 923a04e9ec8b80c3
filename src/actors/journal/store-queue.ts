import {
  type Change,
  ChangeRefusedError,
  type CommitAnswer,
  type CommitId,
  type Committed,
  DatabaseGoneError,
  DatabaseHeldError,
  type Entry,
  goesOnFrom,
  LeaseLostError,
  StoreAwayError,
  StoreError,
  type StoreWrites,
} from '../store/port.ts';
import { lateCommit, storeDeadline } from './commit-answer.ts';

interface Batch {
  readonly id: CommitId;
  /** The next try commits these; each change keeps its position. */
  readonly changes: () => readonly Change[];
}

interface BatchListener {
  committed(committed: Committed): void;
  /** The last try failed. It may have been carried out. */
  failed(error: unknown): void;
}

/**
 * Commits a batch until the store answers. A failed commit is tried again: by its id the store
 * knows one that it has. @returns true when the listener was called at once
 */
type CarryOut = (batch: Batch, listener: BatchListener) => boolean;

/** The pauses before the next tries. */
const pausesMs = [100, 400, 1_000];
/** The pause while the store is away. */
const awayPauseMs = 1_000;

/** Without an answer for so long, a commit is not tried again, unless the store may be away. */
const unansweredMs = 5_000;

/** A held database was tried again by itself; what is lost stays lost. */
const mayHelp = (error: unknown): boolean =>
  error instanceof StoreError &&
  !(
    error instanceof ChangeRefusedError ||
    error instanceof DatabaseHeldError ||
    error instanceof DatabaseGoneError ||
    error instanceof LeaseLostError
  );

interface AnswerListener {
  readonly committed: (committed: Committed) => void;
  readonly failed: (error: unknown, waitedMs: number) => void;
}

/** Takes the answer of the store, or its failure, or the end of the time that it has. */
const inTime = (answer: Promise<Committed>, { committed, failed }: AnswerListener): void => {
  let isOpen = true;
  const end = (act: () => void): void => {
    cancel();
    if (!isOpen) return;
    isOpen = false;
    act();
  };
  const { deadlineMs, later } = storeDeadline;
  const cancel = later(() => end(() => failed(lateCommit(), deadlineMs)), deadlineMs);
  answer.then(
    (word) => end(() => committed(word)),
    (error: unknown) => end(() => failed(error, 0)),
  );
};

const createCarryOut =
  (store: Pick<StoreWrites, 'commit'>, outageMs: number): CarryOut =>
  ({ id, changes }, listener) => {
    const began = performance.now();
    let failures = 0;
    let unanswered = 0;
    /** @returns true when it was the last try */
    const failed = (error: unknown, waitedMs: number): boolean => {
      unanswered += waitedMs;
      const isAway = waitedMs > 0 || error instanceof StoreAwayError;
      const isOutage = isAway && performance.now() - began < outageMs;
      const pauseMs = pausesMs[failures] ?? (isOutage ? awayPauseMs : undefined);
      failures += 1;
      const isOver = pauseMs === undefined || (unanswered > unansweredMs && !isOutage);
      if (!mayHelp(error) || isOver) {
        listener.failed(error);
        return true;
      }
      storeDeadline.later(tryOnce, pauseMs);
      return false;
    };
    const tryOnce = (): boolean => {
      let answer: ReturnType<StoreWrites['commit']>;
      try {
        answer = store.commit({ entries: [], commit: id }, ...changes());
      } catch (error) {
        return failed(error, 0);
      }
      if (answer instanceof Promise) {
        inTime(answer, { committed: listener.committed, failed });
        return false;
      }
      listener.committed(answer);
      return true;
    };
    return tryOnce();
  };

interface Reply {
  resolve(answer: CommitAnswer): void;
  reject(error: unknown): void;
  /** The reply if it is known by now, else a promise of it. */
  read(): CommitAnswer | Promise<CommitAnswer>;
}

const createReply = (): Reply => {
  let settle: {
    readonly resolve: (answer: CommitAnswer) => void;
    readonly reject: (error: unknown) => void;
  } | null = null;
  let known: (() => CommitAnswer) | null = null;
  return {
    resolve: (answer) => {
      known = () => answer;
      settle?.resolve(answer);
    },
    reject: (error) => {
      known = () => {
        throw error;
      };
      settle?.reject(error);
    },
    read: () =>
      known?.() ??
      new Promise((resolve, reject) => {
        settle = { resolve, reject };
      }),
  };
};

/**
 * Commits in one turn of the event loop that do not wait for others. One task alone needs no more.
 */
const aloneAtMost = 4;

/** Counts the commits of a turn, and calls `sendRest` at its end when there were more. */
const createTurnCount = (sendRest: () => void): { isCrowded(): boolean } => {
  let count = 0;
  const end = (): void => {
    const isCrowded = count > aloneAtMost;
    count = 0;
    if (isCrowded) sendRest();
  };
  return {
    isCrowded: () => {
      if (count === 0) setImmediate(end);
      count += 1;
      return count > aloneAtMost;
    },
  };
};

/**
 * A change on its way to the store. Without a caller it is gathered, and kept until it is saved.
 */
export interface WaitingChange {
  readonly change: Change;
  readonly caller: Reply | null;
  readonly onStale: (() => void) | undefined;
}

export type Gathered = 'added' | 'joined';

/** Both as one, when `next` is the next state of the same actor and has no condition of its own. */
const joinedChange = (last: WaitingChange | undefined, next: Change): Change | null => {
  const actor = last?.caller === null ? last.change.actor : undefined;
  if (last === undefined || actor === undefined || actor.id !== next.actor?.id) return null;
  const { guard, entries } = last.change;
  if (next.tasks !== undefined || guard === undefined || next.guard === undefined) return null;
  return {
    ...last.change,
    ...next,
    entries: [...entries, ...next.entries],
    guard: { ...next.guard, revision: guard.revision },
  };
};

/**
 * Changes in the order in which they happened. One transaction at a time is underway; what comes
 * meanwhile is the next one. So the order is kept, and many callers share a transaction, also when
 * the store answers at once: after a few commits in one turn of the event loop, the others wait for
 * its end and are committed together.
 */
export interface StoreQueue {
  /** Commits a change with all that waits before it, in one transaction. */
  commit(change: Change): CommitAnswer | Promise<CommitAnswer>;
  /**
   * Also `joined`: the state of an actor takes the place of its last one, which waits right before
   * it, so only one revision is saved of both.
   */
  gather(change: Change, onStale?: () => void): Gathered;
  /** Makes stale what a task and its agents have not committed yet. */
  discard(taskId: string): void;
  hasGathered(): boolean;
  isUnderway(): boolean;
  /** True when nothing waits and nothing is underway. */
  isEmpty(): boolean;
}

export interface StoreQueueListener {
  saved(entries: readonly Entry[]): void;
  /** The store refuses this change alone, which had no caller: it is dropped. */
  refused(error: ChangeRefusedError, change: Change): void;
  /** @returns the gathered changes to keep */
  failed(error: unknown, gathered: readonly WaitingChange[]): readonly WaitingChange[];
}

const lostWith = (
  stale: readonly Change[],
  waiting: readonly WaitingChange[],
): readonly WaitingChange[] =>
  waiting.filter(
    ({ change: { actor } }) =>
      actor !== undefined && stale.some((change) => goesOnFrom(change, actor)),
  );

/** Replaces a change that is not committed any more. */
const nothing: WaitingChange = { change: { entries: [] }, caller: null, onStale: undefined };

/** After the last try: callers hear of it, what is gathered and `kept` goes with the next commit. */
const keptOf = (
  batch: readonly WaitingChange[],
  waiting: readonly WaitingChange[],
  kept: ReadonlySet<WaitingChange>,
): WaitingChange[] => [
  ...batch.filter((each) => kept.has(each)),
  ...waiting.filter((each) => each.caller !== null || kept.has(each)),
];

const answer = (
  changes: readonly WaitingChange[],
  isStale: (change: WaitingChange) => boolean,
): void => {
  for (const each of changes) {
    each.caller?.resolve(isStale(each) ? 'stale' : 'ok');
    if (isStale(each)) each.onStale?.();
  }
};

const isGathered = (each: WaitingChange): boolean => each.caller === null && each !== nothing;

/** Its caller waits for what came before. */
const isEmpty = ({ change }: WaitingChange): boolean =>
  change.entries.length === 0 && Object.keys(change).length === 1;

interface SentBatch extends Batch {
  all: WaitingChange[];
}

const batchOf = (id: CommitId, all: WaitingChange[]): SentBatch => {
  const batch: SentBatch = { id, all, changes: () => batch.all.map(({ change }) => change) };
  return batch;
};

export interface StoreQueueOptions extends StoreQueueListener {
  /** The id of this start of the server, in the names of its commits. */
  readonly node: string;
  /** How long the store may be away. */
  readonly outageMs: number;
}

export const createStoreQueue = (
  store: Pick<StoreWrites, 'commit'>,
  { node, outageMs, ...listener }: StoreQueueOptions,
): StoreQueue => {
  let waiting: WaitingChange[] = [];
  let underway: SentBatch | null = null;
  let lastNumber = 0;
  let answered = 0;
  const carryOut = createCarryOut(store, outageMs);

  const saved = ({ id, all }: SentBatch, { stale, entries }: Committed): void => {
    answered = id.number;
    listener.saved(entries);
    const lost = new Set(lostWith(stale, waiting));
    waiting = waiting.filter((each) => !lost.has(each));
    answer(all, (each) => stale.includes(each.change));
    answer([...lost], () => true);
  };
  /** As many of those that wait go one by one: one of them was refused. */
  let alone = 0;
  const isolate = (all: readonly WaitingChange[], error: ChangeRefusedError): void => {
    const rest = all.filter((each) => each !== nothing && !isEmpty(each));
    const [only] = rest;
    if (only === undefined || rest.length > 1) {
      alone = Math.max(alone, all.length);
      waiting = [...all, ...waiting];
      return;
    }
    if (only.caller === null) listener.refused(error, only.change);
    only.onStale?.();
    for (const { caller } of all) caller?.reject(error);
  };
  const failed = ({ all }: SentBatch, error: unknown): void => {
    if (error instanceof ChangeRefusedError) {
      isolate(all, error);
      return;
    }
    const gathered = [...all, ...waiting].filter(isGathered);
    waiting = keptOf(all, waiting, new Set(listener.failed(error, gathered)));
    for (const { caller } of all) caller?.reject(error);
  };
  const send = (): void => {
    if (waiting.every(isEmpty)) {
      const ended = waiting;
      waiting = [];
      alone = 0;
      answer(ended, () => false);
      return;
    }
    lastNumber += 1;
    const count = alone > 0 ? 1 : waiting.length;
    alone = Math.max(0, alone - 1);
    const batch = batchOf({ node, number: lastNumber, answered }, waiting.slice(0, count));
    waiting = waiting.slice(count);
    /** @returns false while the first try goes on, so the caller is still there */
    const end = (): boolean => {
      if (underway !== batch) return false;
      underway = null;
      return true;
    };
    const isAnswered = carryOut(batch, {
      committed: (committed) => {
        const isLater = end();
        saved(batch, committed);
        if (isLater) sendRest();
      },
      failed: (error) => {
        const isLater = end();
        failed(batch, error);
        // The callers hear of it first, and may discard what goes on from it.
        if (isLater || alone > 0) setImmediate(sendRest);
      },
    });
    if (!isAnswered) underway = batch;
  };
  const sendRest = (): void => {
    if (underway === null && (alone > 0 || waiting.some(({ caller }) => caller !== null))) send();
  };
  const turn = createTurnCount(sendRest);

  return {
    commit: (change) => {
      const caller = createReply();
      waiting.push({ change, caller, onStale: undefined });
      if (!turn.isCrowded() && underway === null) send();
      return caller.read();
    },
    gather: (change, onStale) => {
      const both = joinedChange(waiting.at(-1), change);
      if (both !== null) waiting.pop();
      waiting.push({ change: both ?? change, caller: null, onStale });
      return both === null ? 'added' : 'joined';
    },
    discard: (taskId) => {
      const isOf = ({ change: { actor } }: WaitingChange): boolean => actor?.taskId === taskId;
      const discarded = [...(underway?.all ?? []), ...waiting].filter(isOf);
      waiting = waiting.filter((each) => !isOf(each));
      if (underway !== null)
        underway.all = underway.all.map((each) => (isOf(each) ? nothing : each));
      for (const { caller } of discarded) caller?.resolve('stale');
    },
    hasGathered: () => [...(underway?.all ?? []), ...waiting].some(isGathered),
    isUnderway: () => underway !== null,
    isEmpty: () => waiting.length === 0 && underway === null,
  };
};
