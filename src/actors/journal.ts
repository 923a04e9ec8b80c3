import type { Change, Entry, NewEntry, Store } from './store/port.ts';

/**
 * The journal as the rest of the service uses it: transitions are committed at once, progress is gathered for a moment
 * and committed together, always in the order in which it happened; listeners hear only of what was committed.
 */
export interface Journal {
  /** Commits what was gathered and then this, in one transaction. */
  commit(change: Change): readonly Entry[];
  /** Adds progress that may wait a few milliseconds for company. */
  append(entry: NewEntry): void;
  /** Commits what was gathered. */
  flush(): void;
  /** Tells of every commit when it is durable; what a listener throws would end the actor that committed. */
  onCommit(listener: (entries: readonly Entry[]) => void): () => void;
}

const gatherMs = 10;
const gatherAtMost = 256;

export interface JournalOptions {
  /** Called when gathered progress could not be committed; it stays gathered and is tried again. */
  readonly onError: (error: unknown) => void;
}

export const createJournal = (store: Store, { onError }: JournalOptions): Journal => {
  const listeners = new Set<(entries: readonly Entry[]) => void>();
  let gathered: NewEntry[] = [];
  let timer: NodeJS.Timeout | null = null;

  const tell = (entries: readonly Entry[]): void => {
    for (const listener of listeners) listener(entries);
  };
  const commit = (change: Change): readonly Entry[] => {
    const entries = store.commit({ ...change, entries: [...gathered, ...change.entries] });
    gathered = [];
    tell(entries);
    return entries;
  };
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (gathered.length > 0) commit({ entries: [] });
  };
  const flushLater = (): void => {
    timer ??= setTimeout(() => {
      timer = null;
      try {
        flush();
      } catch (error) {
        gathered = gathered.slice(-gatherAtMost);
        onError(error);
      }
    }, gatherMs);
  };

  return {
    commit,
    flush,
    append: (entry) => {
      gathered.push(entry);
      flushLater();
    },
    onCommit: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
