import {
  type Change,
  type CommitAnswer,
  type Committed,
  type Entry,
  goesOnFrom,
  type StoreWrites,
} from '../store/port.ts';
import { lateCommit, storeDeadline } from './commit-answer.ts';

/**
 * A change on its way to the store. Without a caller it is gathered, and kept until it is saved.
 */
export interface Waiting {
  readonly change: Change;
  readonly caller: Reply | null;
  readonly onStale: (() => void) | undefined;
}

export type Gathered = 'added' | 'joined';

/** Both as one, when `next` is the next state of the same actor and has no condition of its own. */
const joined = (last: Waiting | undefined, next: Change): Change | null => {
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
  /** With all that waits before it, in one transaction. */
  commit(change: Change): CommitAnswer | Promise<CommitAnswer>;
  /**
   * Also `joined`: the state of an actor takes the place of its last one, which waits right before
   * it, so only one revision is saved of both.
   */
  gather(change: Change, onStale?: () => void): Gathered;
  /** Makes the states of a task and of its agents stale that wait. */
  discard(taskId: string): void;
  hasGathered(): boolean;
  /** True when nothing waits and nothing is underway. */
  isEmpty(): boolean;
}

export interface StoreQueueListener {
  saved(entries: readonly Entry[]): void;
  /** @returns the gathered changes to keep */
  failed(error: unknown, gathered: readonly Waiting[]): readonly Waiting[];
}

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

export const createStoreQueue = (
  store: Pick<StoreWrites, 'commit'>,
  listener: StoreQueueListener,
): StoreQueue => {
  let waiting: Waiting[] = [];
  let isUnderway = false;

  const saved = (batch: readonly Waiting[], { entries, stale }: Committed): void => {
    listener.saved(entries);
    const isLost = ({ change: { actor } }: Waiting): boolean =>
      actor !== undefined && stale.some((change) => goesOnFrom(change, actor));
    const lost = new Set(stale.length === 0 ? [] : waiting.filter(isLost));
    waiting = waiting.filter((each) => !lost.has(each));
    for (const each of [...batch, ...lost]) {
      const isStale = lost.has(each) || stale.includes(each.change);
      each.caller?.resolve(isStale ? 'stale' : 'ok');
      if (isStale) each.onStale?.();
    }
  };
  const failed = (batch: readonly Waiting[], error: unknown): void => {
    const gathered = [...batch, ...waiting].filter(({ caller }) => caller === null);
    const kept = new Set(listener.failed(error, gathered));
    waiting = [
      ...batch.filter((each) => kept.has(each)),
      ...waiting.filter((each) => each.caller !== null || kept.has(each)),
    ];
    for (const { caller } of batch) caller?.reject(error);
  };
  const follow = (batch: readonly Waiting[], answer: Promise<Committed>): void => {
    isUnderway = true;
    const end = (act: () => void): void => {
      cancel();
      if (!isOpen) return;
      isOpen = false;
      isUnderway = false;
      act();
    };
    const fail = (error: unknown): void =>
      end(() => {
        failed(batch, error);
        // The callers hear of it first, and may discard what goes on from it.
        setImmediate(sendRest);
      });
    let isOpen = true;
    const cancel = storeDeadline.later(() => fail(lateCommit()), storeDeadline.deadlineMs);
    answer.then(
      (committed) =>
        end(() => {
          saved(batch, committed);
          sendRest();
        }),
      fail,
    );
  };
  const sendRest = (): void => {
    if (!isUnderway && waiting.some(({ caller }) => caller !== null)) send();
  };
  const turn = createTurnCount(sendRest);
  const send = (): void => {
    const batch = waiting;
    waiting = [];
    try {
      const answer = store.commit(...batch.map(({ change }) => change));
      if (answer instanceof Promise) follow(batch, answer);
      else saved(batch, answer);
    } catch (error) {
      failed(batch, error);
    }
  };

  return {
    commit: (change) => {
      const caller = createReply();
      waiting.push({ change, caller, onStale: undefined });
      if (!turn.isCrowded() && !isUnderway) send();
      return caller.read();
    },
    gather: (change, onStale) => {
      const both = joined(waiting.at(-1), change);
      if (both !== null) waiting.pop();
      waiting.push({ change: both ?? change, caller: null, onStale });
      return both === null ? 'added' : 'joined';
    },
    discard: (taskId) => {
      const isOf = ({ change: { actor } }: Waiting): boolean => actor?.taskId === taskId;
      const discarded = waiting.filter(isOf);
      waiting = waiting.filter((each) => !isOf(each));
      for (const { caller } of discarded) caller?.resolve('stale');
    },
    hasGathered: () => waiting.some(({ caller }) => caller === null),
    isEmpty: () => waiting.length === 0 && !isUnderway,
  };
};
