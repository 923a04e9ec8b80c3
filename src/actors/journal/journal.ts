import { messageOf } from '../../machines/message-of.ts';
import type { Change, Entry, NewEntry, Store } from '../store/port.ts';

/**
 * The journal as the rest of the service uses it: transitions are committed at once, progress is gathered for a moment
 * and committed together, always in the order in which it happened; listeners hear only of what was committed.
 */
export interface Journal {
  /** Commits what was gathered and then this, in one transaction. */
  commit(change: Change): readonly Entry[];
  /** Keeps a change that nobody was told of and nothing follows from, for a few milliseconds, to be committed in company. */
  gather(change: Change): void;
  /** Gives up the gathered states of an actor that broke, so that they cannot come after what is restored. */
  discard(actorId: string): void;
  /** Gathers progress. */
  append(entry: NewEntry): void;
  /** Commits what was gathered. */
  flush(): void;
  /** Tries to commit what could not be, and says why it still cannot, or null. */
  retry(): string | null;
  /** Commits what was gathered, and tries no more. */
  stop(): void;
  /** Tells of every commit when it is durable. What a listener throws is reported, and changes nothing for others. */
  onCommit(listener: (entries: readonly Entry[]) => void): () => void;
}

const gatherMs = 10;
const longestRetryPauseMs = 30_000;
const waitingBytesAtMost = 16 * 1024 * 1024;

export interface JournalOptions {
  /** Called when gathered progress could not be committed; it stays gathered and is tried again. */
  readonly onError: (error: unknown) => void;
  readonly onListenerError: (error: unknown) => void;
}

const bytesOf = ({ entries }: Change): number => entries.reduce((sum, { data }) => sum + data.length, 0);

/** What cannot be committed must not grow for ever: the oldest progress is given up first, states never. */
const shortened = (gathered: readonly Change[]): Change[] => {
  let bytes = gathered.reduce((sum, change) => sum + bytesOf(change), 0);
  return gathered.filter((change) => {
    const isKept = change.actor !== undefined || bytes <= waitingBytesAtMost;
    if (!isKept) bytes -= bytesOf(change);
    return isKept;
  });
};

export const createJournal = (store: Store, { onError, onListenerError }: JournalOptions): Journal => {
  const listeners = new Set<(entries: readonly Entry[]) => void>();
  let gathered: Change[] = [];
  let timer: NodeJS.Timeout | null = null;
  let failures = 0;
  let problem: string | null = null;
  let stopped = false;
  const untold: (readonly Entry[])[] = [];
  let telling = false;

  /** In the order of the commits, also when a listener commits. */
  const tell = (entries: readonly Entry[]): void => {
    untold.push(entries);
    if (telling) return;
    telling = true;
    for (let next = untold.shift(); next !== undefined; next = untold.shift())
      for (const listener of listeners)
        try {
          listener(next);
        } catch (error) {
          onListenerError(error);
        }
    telling = false;
  };
  const commit = (change: Change): readonly Entry[] => {
    const entries = write(change);
    gathered = [];
    failures = 0;
    problem = null;
    tell(entries);
    return entries;
  };
  const write = (change: Change): readonly Entry[] => {
    try {
      return store.commit(...gathered, change);
    } catch (error) {
      failures += 1;
      problem = messageOf(error);
      gathered = shortened(gathered);
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

  const retry = (): string | null => {
    if (failures === 0 || gathered.length === 0) return null;
    try {
      flush();
    } catch (error) {
      onError(error);
    }
    return problem;
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
    retry,
    stop: () => {
      stopped = true;
      flush();
    },
    append: (entry) => gather({ entries: [entry] }),
    onCommit: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
