import { hash } from 'node:crypto';
import type { Entry, KeptEntry } from '../port.ts';
import type { Row } from './rows.ts';

/** An entry as its row has it: `data` lacks the fields that are as in the entry `base`. */
export interface StoredEntry extends Entry {
  readonly base: number | null;
}

/** Many rows are read in parts: other work comes in between, and memory stays small. */
export const rowsPerRead = 1_000;

export const storedEntryOf = (row: Row): StoredEntry => ({
  seq: Number(row['seq']),
  taskId: String(row['task_id']),
  // A journal of an earlier version that is only read has no numbers.
  taskSeq: Number(row['task_seq'] ?? 0),
  attempt: Number(row['attempt']),
  type: String(row['type']),
  at: Number(row['at']),
  data: String(row['data']),
  cause: row['cause'] === null ? null : String(row['cause']),
  base: row['base'] == null ? null : Number(row['base']),
});

export const textOrNull = (row: Row, column: string): string | null =>
  row[column] == null ? null : String(row[column]);

export const keptEntryOf = (row: Row): KeptEntry => ({
  ...storedEntryOf(row),
  previous: textOrNull(row, 'previous'),
  hash: textOrNull(row, 'hash'),
});

/**
 * SHA-256 (hex) of an entry and of the hash of the task's previous entry, which is empty for the
 * first: who changes, removes, adds or swaps an entry must change all that follow it.
 */
export const hashOfEntry = (
  previous: string,
  { seq, taskId, attempt, type, at, data, cause, base }: StoredEntry,
): string =>
  hash('sha256', JSON.stringify([previous, seq, taskId, attempt, type, at, data, cause, base]));
