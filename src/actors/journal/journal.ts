import { messageOf } from '../../machines/message-of.ts';
import type { Change, Entry, NewEntry, Store } from '../store/port.ts';
import { createCommitListeners } from './commit-listeners.ts';

/** Commits transitions at once and progress in batches, in the order in which they happened. */
export interface Journal {
  /** Commits the gathered changes and this one, in one transaction. */
  commit(change: Change): readonly Entry[];
  /**
   * Buffers a change for up to 10 ms and commits it with the next one. For changes without effects.
   */
  gather(change: Change): void;
  /** Drops gathered states of a failed actor. */
  discard(actorId: string): void;
  append(entry: NewEntry): void;
  flush(): void;
  /** Why gathered changes cannot be committed now, or null. The journal tries again by itself. */
  problem(): string | null;
  /** Commits the gathered changes, and never retries. */
  stop(): void;
  /** Calls the listener after every commit. @returns removes it */
  onCommit(listener: (entries: readonly Entry[]) => void): () => void;
}

const gatherMs = 10;
const longestRetryPauseMs = 30_000;
const waitingBytesAtMost = 16 * 1024 * 1024;

export interface JournalOptions {
  /** Called when gathered changes could not be committed; they stay gathered and are retried. */
  readonly onError: (error: unknown) => void;
  readonly onListenerError: (error: unknown) => void;
}

const textBytes = ({ entries }: Change): number => entries.reduce((sum, { data }) => sum + data.length, 0);

/** Bounds the gathered changes: drops the oldest progress, never a state. */
const withinLimit = (gathered: readonly Change[]): Change[] => {
  let bytes = gathered.reduce((sum, change) => sum + textBytes(change), 0);
  return gathered.filter((change) => {
    const isKept = change.actor !== undefined || bytes <= waitingBytesAtMost;
    if (!isKept) bytes -= textBytes(change);
    return isKept;
  });
};

export const createJournal = (store: Store, { onError, onListenerError }: JournalOptions): Journal => {
  const listeners = createCommitListeners(onListenerError);
  let gathered: Change[] = [];
  let timer: NodeJS.Timeout | null = null;
  let failures = 0;
  let problem: string | null = null;
  let stopped = false;
  const commit = (change: Change): readonly Entry[] => {
    const entries = write(change);
    gathered = [];
    failures = 0;
    problem = null;
    listeners.notify(entries);
    return entries;
  };
  const write = (change: Change): readonly Entry[] => {
    try {
      return store.commit(...gathered, change);
    } catch (error) {
      failures += 1;
      problem = messageOf(error);
      gathered = withinLimit(gathered);
      if (gathered.length > 0) flushLater();
      throw error;
    }
  };
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (gathered.length > 0) commit({ entries: [] });
  };
  const flushLater = (): void => {
    if (stopped) return;
    timer ??= setTimeout(
      () => {
        timer = null;
        try {
          flush();
        } catch (error) {
          onError(error);
        }
      },
      Math.min(gatherMs * 2 ** failures, longestRetryPauseMs),
    );
  };

  const gather = (change: Change): void => {
    gathered.push(change);
    flushLater();
  };

  return {
    commit,
    flush,
    gather,
    discard: (actorId) => {
      gathered = gathered.filter(({ actor }) => actor?.id !== actorId);
    },
    problem: () => (gathered.length === 0 ? null : problem),
    stop: () => {
      stopped = true;
      flush();
    },
    append: (entry) => gather({ entries: [entry] }),
    onCommit: listeners.add,
  };
};
