import {
  type Change,
  type CommitAnswer,
  type Committed,
  goesOnFrom,
  type StoreWrites,
} from '../store/port.ts';
import { lateCommit, storeDeadline } from './commit-answer.ts';
import { createReply, type Reply } from './commit-reply.ts';
import { createTurnCount } from './turn-count.ts';

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
  isUnderway(): boolean;
  /** True when nothing waits and nothing is underway. */
  isEmpty(): boolean;
}

export interface StoreQueueListener {
  saved(): void;
  /** @returns the gathered changes to keep */
  failed(error: unknown, gathered: readonly WaitingChange[]): readonly WaitingChange[];
}

/** After a failure: callers hear of it, what is gathered and `kept` is tried again. */
const keptOf = (
  batch: readonly WaitingChange[],
  waiting: readonly WaitingChange[],
  kept: ReadonlySet<WaitingChange>,
): WaitingChange[] => [
  ...batch.filter((each) => kept.has(each)),
  ...waiting.filter((each) => each.caller !== null || kept.has(each)),
];

/** Changes that go on from a stale one. */
const lostWith = (
  stale: readonly Change[],
  waiting: readonly WaitingChange[],
): readonly WaitingChange[] =>
  waiting.filter(
    ({ change: { actor } }) =>
      actor !== undefined && stale.some((change) => goesOnFrom(change, actor)),
  );

interface AnswerListener {
  readonly committed: (committed: Committed) => void;
  readonly failed: (error: unknown) => void;
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
  const fail = (error: unknown): void => end(() => failed(error));
  const cancel = storeDeadline.later(() => fail(lateCommit()), storeDeadline.deadlineMs);
  answer.then((word) => end(() => committed(word)), fail);
};

export const createStoreQueue = (
  store: Pick<StoreWrites, 'commit'>,
  listener: StoreQueueListener,
): StoreQueue => {
  let waiting: WaitingChange[] = [];
  let isUnderway = false;

  const saved = (batch: readonly WaitingChange[], { stale }: Committed): void => {
    listener.saved();
    const lost = new Set(lostWith(stale, waiting));
    waiting = waiting.filter((each) => !lost.has(each));
    for (const each of [...batch, ...lost]) {
      const isStale = lost.has(each) || stale.includes(each.change);
      each.caller?.resolve(isStale ? 'stale' : 'ok');
      if (isStale) each.onStale?.();
    }
  };
  const failed = (batch: readonly WaitingChange[], error: unknown): void => {
    const gathered = [...batch, ...waiting].filter(({ caller }) => caller === null);
    waiting = keptOf(batch, waiting, new Set(listener.failed(error, gathered)));
    for (const { caller } of batch) caller?.reject(error);
  };
  const follow = (batch: readonly WaitingChange[], answer: Promise<Committed>): void => {
    isUnderway = true;
    inTime(answer, {
      committed: (committed) => {
        isUnderway = false;
        saved(batch, committed);
        sendRest();
      },
      failed: (error) => {
        isUnderway = false;
        failed(batch, error);
        // The callers hear of it first, and may discard what goes on from it.
        setImmediate(sendRest);
      },
    });
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
      const both = joinedChange(waiting.at(-1), change);
      if (both !== null) waiting.pop();
      waiting.push({ change: both ?? change, caller: null, onStale });
      return both === null ? 'added' : 'joined';
    },
    discard: (taskId) => {
      const isOf = ({ change: { actor } }: WaitingChange): boolean => actor?.taskId === taskId;
      const discarded = waiting.filter(isOf);
      waiting = waiting.filter((each) => !isOf(each));
      for (const { caller } of discarded) caller?.resolve('stale');
    },
    hasGathered: () => waiting.some(({ caller }) => caller === null),
    isUnderway: () => isUnderway,
    isEmpty: () => waiting.length === 0 && !isUnderway,
  };
};
