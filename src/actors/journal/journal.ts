import { messageOf } from '../../machines/message-of.ts';
import type { Change, CommitAnswer, Entry, EntryReads, StoreWrites } from '../store/port.ts';
import { type CommitDeadline, transitionDeadline } from './commit-answer.ts';
import { createStoreQueue, type Gathered, type WaitingChange } from './store-queue.ts';

/**
 * Commits transitions at once and progress in batches, in the order in which they happened. While
 * the store has not answered, what comes next waits and is committed together.
 */
export interface Journal {
  /** For a transition. */
  readonly deadline: CommitDeadline;
  /** Commits the gathered changes and this one, in one transaction. */
  commit(change: Change): CommitAnswer | Promise<CommitAnswer>;
  /**
   * Buffers a change for up to 10 ms and commits it with the next one. For changes without effects.
   * `onStale` is called when the store refuses it.
   * @returns as `StoreQueue.gather`
   */
  gather(change: Change, onStale?: () => void): Gathered;
  /** Makes stale what a failed task and its agents have not committed yet. */
  discard(taskId: string): void;
  flush(): CommitAnswer | Promise<CommitAnswer>;
  /**
   * Resolves when the gathered changes are committed: with what else comes in this turn of the event
   * loop. @throws StoreError
   */
  whenSaved(): Promise<void>;
  /** Why gathered changes cannot be committed now, or null. The journal tries again by itself. */
  problem(): string | null;
  /** Why nobody hears of what is committed, or null. The journal tries again by itself. */
  deafness(): string | null;
  /** Commits the gathered changes, and never retries. */
  stop(): CommitAnswer | Promise<CommitAnswer>;
  /** Calls the listener with every committed entry, whoever committed it. @returns removes it */
  onCommit(listener: EntriesListener): () => void;
  /** As `onCommit`, with the entries of this process alone. */
  onOwnCommit(listener: EntriesListener): () => void;
}

type EntriesListener = (entries: readonly Entry[]) => void;

const gatherChangesMs = 10;
const longestRetryPauseMs = 30_000;
const firstFollowPauseMs = 250;
const waitingBytesAtMost = 16 * 1024 * 1024;

export interface JournalOptions {
  /** The id of this start of the server, in the names of its commits. */
  readonly node: string;
  /** How long the store may be away; default: a moment. */
  readonly outageMs?: number;
  /** Called when gathered changes could not be committed; they stay gathered and are retried. */
  readonly onError: (error: unknown) => void;
  /** The store refused a change that nobody waits for, of this task or actor: it is not saved. */
  readonly onRefused?: (error: unknown, id: string | null) => void;
  readonly onListenerError: (error: unknown) => void;
}

const textBytes = ({ entries }: Change): number =>
  entries.reduce((sum, { data }) => sum + data.length, 0);

/** Bounds the gathered changes: drops the oldest progress, never a state or a step. */
const withinLimit = (gathered: readonly WaitingChange[]): readonly WaitingChange[] => {
  let bytes = gathered.reduce((sum, { change }) => sum + textBytes(change), 0);
  return gathered.filter(({ change }) => {
    const isProgress = change.actor === undefined && change.step === undefined;
    const isKept = !isProgress || bytes <= waitingBytesAtMost;
    if (!isKept) bytes -= textBytes(change);
    return isKept;
  });
};

const createListeners = (onError: (error: unknown) => void) => {
  const listeners = new Set<EntriesListener>();
  const tell = (entries: readonly Entry[]): void => {
    for (const listener of [...listeners])
      try {
        listener(entries);
      } catch (error) {
        onError(error);
      }
  };
  const on = (listener: EntriesListener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return { tell, on };
};

export const createJournal = (
  store: Pick<StoreWrites, 'commit'> & Pick<EntryReads, 'subscribe'>,
  { node, outageMs = 0, onError, onRefused, onListenerError }: JournalOptions,
): Journal => {
  const all = createListeners(onListenerError);
  const own = createListeners(onListenerError);
  let timer: NodeJS.Timeout | null = null;
  let failures = 0;
  let problem: string | null = null;
  let stopped = false;
  let deafness: string | null = null;
  /** Again and again, from the last entry: what follows the journal waits, and misses nothing. */
  const follow = (after: number | undefined, pauseMs: number): void => {
    let nextPauseMs = pauseMs;
    const heard = (): void => {
      deafness = null;
      nextPauseMs = firstFollowPauseMs;
    };
    const end = store.subscribe(
      {
        entries: (entries) => {
          heard();
          all.tell(entries);
        },
        caughtUp: heard,
        failed: (error, last) => {
          onListenerError(error);
          deafness = `the journal cannot be read: ${messageOf(error)}`;
          end();
          const again = (): void => {
            if (!stopped) follow(last, Math.min(2 * nextPauseMs, longestRetryPauseMs));
          };
          setTimeout(again, nextPauseMs).unref();
        },
      },
      after === undefined ? undefined : { after },
    );
  };
  follow(undefined, firstFollowPauseMs);
  const savers = new Set<() => void>();
  const queue = createStoreQueue(store, {
    node,
    outageMs,
    saved: (entries) => {
      own.tell(entries);
      failures = 0;
      problem = null;
      for (const tell of savers) tell();
      savers.clear();
    },
    refused: (error, { actor, step, entries }) =>
      onRefused?.(error, actor?.id ?? step?.taskId ?? entries[0]?.taskId ?? null),
    failed: (error, gathered) => {
      failures += 1;
      problem = messageOf(error);
      const kept = withinLimit(gathered);
      if (kept.length > 0) flushLater();
      return kept;
    },
  });
  const flush: Journal['flush'] = () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    return queue.isEmpty() ? 'ok' : queue.commit({ entries: [] });
  };
  /** Resolves with the next commit, to true, or at the end of this turn. */
  const isSavedThisTurn = (): Promise<boolean> =>
    new Promise((resolve) => {
      const tell = (): void => resolve(true);
      savers.add(tell);
      setImmediate(() => {
        savers.delete(tell);
        resolve(false);
      });
    });
  const flushLater = (): void => {
    if (stopped) return;
    timer ??= setTimeout(
      () => {
        timer = null;
        (async () => flush())().catch(onError);
      },
      Math.min(gatherChangesMs * 2 ** failures, longestRetryPauseMs),
    );
  };
  const gather: Journal['gather'] = (change, onStale) => {
    flushLater();
    return queue.gather(change, onStale);
  };

  return {
    deadline: transitionDeadline(outageMs),
    commit: queue.commit,
    flush,
    gather,
    whenSaved: async () => {
      if (queue.isEmpty() || (!queue.isUnderway() && (await isSavedThisTurn()))) return;
      await flush();
    },
    discard: queue.discard,
    problem: () => (queue.hasGathered() ? problem : null),
    deafness: () => deafness,
    stop: () => {
      stopped = true;
      return flush();
    },
    onCommit: all.on,
    onOwnCommit: own.on,
  };
};
