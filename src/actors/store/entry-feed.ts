import type { Entry } from './port.ts';

/** Gives every entry to its listeners, in the order of the journal, whoever committed it. */
export interface EntryFeed {
  /** @returns removes the listener */
  subscribe(listener: (entries: readonly Entry[]) => void): () => void;
  /** With the entries of a commit; what others committed before comes first. */
  committed(entries: readonly Entry[]): void;
}

export const createEntryFeed = (
  /** The entries after a seq, up to a limit. */
  read: (after: number, limit: number) => readonly Entry[],
  lastSeq: () => number,
): EntryFeed => {
  const listeners = new Set<(entries: readonly Entry[]) => void>();
  let last = 0;
  return {
    subscribe: (listener) => {
      if (listeners.size === 0) last = lastSeq();
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    committed: (entries) => {
      const [first] = entries;
      if (first === undefined || listeners.size === 0) return;
      const missed = first.seq - last - 1;
      const all = missed > 0 ? [...read(last, missed), ...entries] : entries;
      last = entries.at(-1)?.seq ?? last;
      for (const listener of [...listeners]) listener(all);
    },
  };
};
