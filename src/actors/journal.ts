import type { Change, Entry, NewEntry, Store } from './store/port.ts';

export interface FollowOptions {
  /** Absent: every task of the server. */
  readonly taskId?: string;
  /** Only entries with a higher seq. */
  readonly after: number;
  readonly signal: AbortSignal;
}

/**
 * The journal as the rest of the service uses it: transitions are committed at once, progress is gathered for a moment
 * and committed together, always in the order in which it happened; followers read only what was committed.
 */
export interface Journal {
  /** Commits what was gathered and then this, in one transaction. */
  commit(change: Change): readonly Entry[];
  /** Adds progress that may wait a few milliseconds for company. */
  append(entry: NewEntry): void;
  /** Commits what was gathered. */
  flush(): void;
  /** All entries after a point, then new ones as they are committed, without gap or duplicate, until the signal. */
  follow(options: FollowOptions): AsyncIterable<Entry>;
  onCommit(listener: (entries: readonly Entry[]) => void): () => void;
}

const page = 256;
const gatherMs = 10;
const gatherAtMost = 256;

export interface JournalOptions {
  /** Called when gathered progress could not be committed; it stays gathered and is tried again. */
  readonly onError: (error: unknown) => void;
}

/** Wakes one waiting follower; a ring while nobody waits is kept for the next wait. */
const createBell = () => {
  let rung = false;
  let wake: (() => void) | null = null;
  return {
    ring: (): void => {
      rung = true;
      wake?.();
    },
    wait: async (): Promise<void> => {
      if (!rung)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      rung = false;
      wake = null;
    },
  };
};

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
    follow: (options) => follow(store, listeners, options),
  };
};

async function* follow(
  store: Store,
  listeners: Set<(entries: readonly Entry[]) => void>,
  { taskId, after, signal }: FollowOptions,
): AsyncGenerator<Entry> {
  const bell = createBell();
  const listener = (entries: readonly Entry[]): void => {
    if (taskId === undefined || entries.some((entry) => entry.taskId === taskId)) bell.ring();
  };
  listeners.add(listener);
  signal.addEventListener('abort', bell.ring, { once: true });
  try {
    let cursor = after;
    while (!signal.aborted) {
      const entries = store.read({ ...(taskId === undefined ? {} : { taskId }), after: cursor, limit: page });
      for (const entry of entries) {
        yield entry;
        cursor = entry.seq;
        if (signal.aborted) return;
      }
      if (entries.length === 0) await bell.wait();
    }
  } finally {
    listeners.delete(listener);
    signal.removeEventListener('abort', bell.ring);
  }
}
