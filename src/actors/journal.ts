import type { Change, Entry, NewEntry, Store } from './store/port.ts';

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
  /** Tells of every commit when it is durable; what a listener throws would end the actor that committed. */
  onCommit(listener: (entries: readonly Entry[]) => void): () => void;
}

const gatherMs = 10;
const gatherAtMost = 256;

export interface JournalOptions {
  /** Called when gathered progress could not be committed; it stays gathered and is tried again. */
  readonly onError: (error: unknown) => void;
}

/** What cannot be committed must not grow for ever: progress is given up first, states never. */
const shortened = (gathered: readonly Change[]): Change[] => {
  const progress = gathered.filter(({ actor }) => actor === undefined);
  const dropped = new Set(progress.slice(0, Math.max(0, progress.length - gatherAtMost)));
  return gathered.filter((change) => !dropped.has(change));
};

export const createJournal = (store: Store, { onError }: JournalOptions): Journal => {
  const listeners = new Set<(entries: readonly Entry[]) => void>();
  let gathered: Change[] = [];
  let timer: NodeJS.Timeout | null = null;

  const tell = (entries: readonly Entry[]): void => {
    for (const listener of listeners) listener(entries);
  };
  const commit = (change: Change): readonly Entry[] => {
    const entries = store.commit(...gathered, change);
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
        gathered = shortened(gathered);
        onError(error);
      }
    }, gatherMs);
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
    append: (entry) => gather({ entries: [entry] }),
    onCommit: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
