import type { RecordedEntry } from '../../actors/journal/recording.ts';
import { isTransition } from '../../actors/journal/replay.ts';

/** Facts of an entry for the choice; a journal may be larger than the memory. */
export interface EntryFacts {
  readonly seq: number;
  readonly bytes: number;
  readonly isSnapshot: boolean;
  readonly isTransition: boolean;
  /** A piece of what a model or a command wrote. */
  readonly isText: boolean;
  readonly base: number | null;
  readonly hasSecret: boolean;
  readonly hash: string | null;
  readonly number: number;
}

export const entryFactsOf = (entry: RecordedEntry, hasSecret: boolean): EntryFacts => ({
  seq: entry.seq,
  bytes: Buffer.byteLength(JSON.stringify(entry)),
  isSnapshot: entry.type === 'snapshot',
  isTransition: isTransition(entry),
  isText: entry.type === 'tool_output' || entry.type === 'text_delta',
  base: entry.base,
  hasSecret,
  hash: entry.hash,
  number: entry.task_seq,
});

const sizeOf = (facts: readonly EntryFacts[]): number =>
  facts.reduce((sum, { bytes }) => sum + bytes, 0);

/** The newest entries of each rank that fit. */
const newestOf = (
  ranks: readonly (readonly EntryFacts[])[],
  bytesAtMost: number,
): Map<number, EntryFacts> => {
  const chosen = new Map<number, EntryFacts>();
  let left = bytesAtMost;
  for (const rank of ranks)
    for (const each of rank.toReversed().filter(({ seq }) => !chosen.has(seq))) {
      if (each.bytes > left) break;
      left -= each.bytes;
      chosen.set(each.seq, each);
    }
  return chosen;
};

/**
 * The entries that fit: all snapshots, by which the states can be replayed, then the newest others,
 * the texts of models and commands last. When the snapshots alone do not fit, the newest entries
 * with the snapshots that they refer to.
 */
export const chooseEntries = (
  facts: readonly EntryFacts[],
  bytesAtMost: number,
): ReadonlySet<number> => {
  const shown = facts.filter(({ hasSecret }) => !hasSecret);
  const snapshots = shown.filter(({ isSnapshot }) => isSnapshot);
  const others = [shown.filter(({ isText }) => !isText), shown];
  const isFoldable = sizeOf(snapshots) <= bytesAtMost;
  const chosen = newestOf(isFoldable ? [snapshots, ...others] : [shown], bytesAtMost);
  const all = new Map(shown.map((each) => [each.seq, each]));
  for (const { seq, base } of [...chosen.values()].filter((each) => each.base !== null)) {
    const needed = all.get(base ?? 0);
    // Without one, the base holds a secret.
    if (needed === undefined) chosen.delete(seq);
    else chosen.set(needed.seq, needed);
  }
  return new Set(chosen.keys());
};
