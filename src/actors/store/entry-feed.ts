import {
  type Answer,
  type Entry,
  type EntryListener,
  type EntryReads,
  StoreAwayError,
} from './port.ts';

/** Entries of a task, or of all (null), after a seq, up to a limit. */
type ReadEntries = (
  taskId: string | null,
  after: number,
  limit: number,
) => Answer<readonly Entry[]>;

/**
 * A listener and its position. It gets new entries when they are committed; while it is behind, it
 * reads the next ones from the journal. No entries are buffered for it.
 */
interface FeedReader {
  /** New entries; `isNext`: they follow directly on those of the last commit. */
  offer(entries: readonly Entry[], isNext: boolean): void;
  close(): void;
}

interface ReaderStart {
  readonly read: (after: number, limit: number) => Answer<readonly Entry[]>;
  /** The last entry that it does not get. */
  readonly from: number;
  /** False: it begins with the entries in the journal. */
  readonly isLive: boolean;
}

/** Pause before a store that is away is read again. */
const awayPauseMs = 1_000;

const entriesAtMost = 256;
/** Most that a waiting listener keeps; a single entry may be longer. */
const charactersAtMost = 512 * 1024;

/** The first entries, as many as a listener may keep. */
const entriesThatFit = (entries: readonly Entry[]): readonly Entry[] => {
  let size = 0;
  const end = entries.findIndex(({ data }, index) => {
    size += data.length;
    return index > 0 && size > charactersAtMost;
  });
  return end < 0 ? entries : entries.slice(0, end);
};

const whenRead = (
  read: () => Answer<readonly Entry[]>,
  take: (entries: readonly Entry[]) => void,
  failed: (error: unknown) => void,
): void => {
  try {
    const entries = read();
    if (entries instanceof Promise) entries.then(take).catch(failed);
    else take(entries);
  } catch (error) {
    failed(error);
  }
};

const createFeedReader = (
  listener: EntryListener,
  { read, from, isLive: startsLive }: ReaderStart,
): FeedReader => {
  let last = from;
  let isLive = startsLive;
  let isCaughtUp = startsLive;
  let isOpen = true;
  /** There are newer entries than those that are being read. */
  let isMissing = false;
  let limit = entriesAtMost;

  const fail = (error: unknown): void => {
    if (!isOpen) return;
    isOpen = false;
    listener.failed(error, last);
  };
  /** @returns true when it may get more at once */
  const give = (entries: readonly Entry[]): boolean => {
    last = entries.at(-1)?.seq ?? last;
    try {
      const done = listener.entries(entries);
      if (!(done instanceof Promise)) return true;
      done.then(readLater, fail);
    } catch (error) {
      fail(error);
    }
    return false;
  };
  const reachEnd = (): void => {
    isLive = true;
    if (isCaughtUp) return;
    isCaughtUp = true;
    listener.caughtUp?.();
  };
  const take = (entries: readonly Entry[]): void => {
    if (!isOpen) return;
    const some = entriesThatFit(entries);
    const isAll = some.length === entries.length && entries.length < limit;
    // The rest is read again, so read fewer while entries are large.
    if (some.length > 0)
      limit = some.length < entries.length ? some.length : Math.min(2 * limit, entriesAtMost);
    if (some.length > 0 && !give(some)) return;
    // It may have left when it had these.
    if (!isOpen) return;
    if (isMissing || !isAll) readLater();
    else reachEnd();
  };
  const failRead = (error: unknown): void => {
    if (error instanceof StoreAwayError) setTimeout(readOn, awayPauseMs).unref();
    else fail(error);
  };
  const readOn = (): void => {
    if (!isOpen) return;
    isLive = false;
    isMissing = false;
    whenRead(() => read(last, limit), take, failRead);
  };
  /** Lets other work run between two reads. */
  const readLater = (): void => void setImmediate(readOn);
  if (!isLive) readLater();

  return {
    offer: (entries, isNext) => {
      if (!isOpen) return;
      if (!isLive) {
        isMissing = true;
        return;
      }
      if (!isNext) return readOn();
      const [first] = entries;
      const fresh =
        first !== undefined && first.seq > last ? entries : entries.filter(({ seq }) => seq > last);
      if (fresh.length > 0) isLive = give(fresh);
    },
    close: () => {
      isOpen = false;
    },
  };
};

/** Gives every entry to its readers, in the order of the journal, whoever committed it. */
export interface EntryFeed {
  readonly subscribe: EntryReads['subscribe'];
  /** Gives the entries of a commit to the readers. */
  committed(entries: readonly Entry[]): void;
  /** Others tell that they committed entries, up to this one: the readers look. */
  committedElsewhere(lastSeq: number): void;
  close(): void;
}

const byTask = (entries: readonly Entry[]): ReadonlyMap<string, readonly Entry[]> => {
  const tasks = new Map<string, Entry[]>();
  for (const entry of entries) {
    const own = tasks.get(entry.taskId);
    if (own === undefined) tasks.set(entry.taskId, [entry]);
    else own.push(entry);
  }
  return tasks;
};

/** Commits of others within this time are read at once. */
const readingRestsMs = 25;

/** Calls at once, and then at most once in a while: a call in between comes at its end. */
const createRested = (call: () => void) => {
  let rest: NodeJS.Timeout | null = null;
  let isWaiting = false;
  const ask = (): void => {
    isWaiting = rest !== null;
    if (isWaiting) return;
    rest = setTimeout(() => {
      rest = null;
      if (isWaiting) ask();
    }, readingRestsMs).unref();
    call();
  };
  return { ask, isWaiting: () => isWaiting, stop: () => clearTimeout(rest ?? undefined) };
};

export const createEntryFeed = (read: ReadEntries, lastSeq: () => number): EntryFeed => {
  /** By task; null: readers of every task. */
  const readers = new Map<string | null, Set<FeedReader>>();
  /** Commits of a listener come behind the one that it was told of. */
  const commits: (readonly Entry[])[] = [];
  let isGiving = false;
  let last = 0;

  const offer = (taskId: string | null, entries: readonly Entry[], isNext: boolean): void => {
    for (const reader of [...(readers.get(taskId) ?? [])]) reader.offer(entries, isNext);
  };
  const reading = createRested(() => {
    for (const taskId of [...readers.keys()]) offer(taskId, [], false);
  });
  const give = (entries: readonly Entry[]): void => {
    // Else another program committed what is between.
    const isNext = entries[0]?.seq === last + 1 && !reading.isWaiting();
    last = entries.at(-1)?.seq ?? last;
    if (!isNext) {
      reading.ask();
      return;
    }
    offer(null, entries, true);
    for (const [taskId, own] of byTask(entries)) offer(taskId, own, true);
  };

  return {
    subscribe: (listener, { taskId = null, after = null } = {}) => {
      if (readers.size === 0) last = lastSeq();
      const own = readers.get(taskId) ?? new Set();
      const reader = createFeedReader(listener, {
        read: (from, limit) => read(taskId, from, limit),
        from: after ?? lastSeq(),
        isLive: after === null,
      });
      readers.set(taskId, own.add(reader));
      return () => {
        reader.close();
        own.delete(reader);
        if (own.size === 0 && readers.get(taskId) === own) readers.delete(taskId);
      };
    },
    committed: (entries) => {
      if (entries.length === 0 || readers.size === 0) return;
      commits.push(entries);
      if (isGiving) return;
      isGiving = true;
      for (let next = commits.shift(); next !== undefined; next = commits.shift()) give(next);
      isGiving = false;
    },
    committedElsewhere: (lastSeq) => {
      if (lastSeq > last) reading.ask();
    },
    close: () => {
      reading.stop();
      for (const own of readers.values()) for (const reader of own) reader.close();
      readers.clear();
    },
  };
};
