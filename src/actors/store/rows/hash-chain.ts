import { hash } from 'node:crypto';
import type { StoredEntry } from './stored-entry.ts';

/**
 * SHA-256 (hex) of an entry and of the hash of the task's previous entry, which is empty for the
 * first: who changes, removes, adds or swaps an entry must change all that follow it.
 */
export const hashOfEntry = (
  previous: string,
  { seq, taskId, attempt, type, at, data, cause, base }: StoredEntry,
): string =>
  hash('sha256', JSON.stringify([previous, seq, taskId, attempt, type, at, data, cause, base]));
