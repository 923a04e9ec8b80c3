import { createFeedReader, type FeedReader, type ReadEntries } from './feed-reader.ts';
import type { Entry, EntryReads } from './port.ts';

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
