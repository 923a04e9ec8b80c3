import { hashOfEntry } from './hash-chain.ts';
import type { KeptEntry } from './port.ts';

/** The last entry of a task that was checked. */
export interface ChainEnd {
  /** Null while no entry had one: those of version 2.1. */
  readonly hash: string | null;
  readonly taskSeq: number;
}

const changedEntry = 'was changed after it was written';
const added = 'was added to the journal by another program';
const moved = 'does not follow the entry before it: entries were removed, added or swapped';
const misnumbered = 'has another number in its task than it was written with';

const gapBefore = (first: number, last: number): string => {
  const missing =
    first === last
      ? `entry ${first} of the task is missing`
      : `entries ${first} to ${last} of the task are missing`;
  return `does not follow the entry before it: ${missing}`;
};

const hashFault = (entry: KeptEntry, { hash: end }: ChainEnd): string | null => {
  if (entry.hash === null) return end === null ? null : added;
  const previous = entry.previous ?? '';
  if (hashOfEntry(previous, entry) !== entry.hash) return changedEntry;
  return previous === (end ?? '') ? null : moved;
};

/**
 * Says what is wrong with the next entry of a task, to follow its name; null: nothing. A journal of an
 * earlier version that is only read has no numbers.
 */
export const faultInChain = (
  entry: KeptEntry,
  end: ChainEnd,
  isNumbered: boolean,
): string | null => {
  const fault = hashFault(entry, end);
  if ((fault !== null && fault !== moved) || !isNumbered) return fault;
  const next = end.taskSeq + 1;
  if (entry.taskSeq > next && (fault === moved || entry.hash === null))
    return gapBefore(next, entry.taskSeq - 1);
  return fault ?? (entry.taskSeq === next ? null : misnumbered);
};

/** `fault`: of this entry, so that the entries after it have none by it. */
export const endAfter = (entry: KeptEntry, end: ChainEnd, fault: string | null): ChainEnd =>
  fault === added
    ? end
    : {
        hash: entry.hash ?? end.hash,
        taskSeq: fault === misnumbered ? end.taskSeq + 1 : entry.taskSeq,
      };
