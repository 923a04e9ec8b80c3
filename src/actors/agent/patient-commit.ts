import { setTimeout as delay } from 'node:timers/promises';
import type { Journal } from '../journal/journal.ts';
import {
  type Change,
  ChangeRefusedError,
  type CommitAnswer,
  DatabaseGoneError,
  LeaseLostError,
  StoreError,
} from '../store/port.ts';

const firstPauseMs = 250;
const longestPauseMs = 5_000;

const isLost = (error: unknown): boolean =>
  !(error instanceof StoreError) ||
  error instanceof ChangeRefusedError ||
  error instanceof DatabaseGoneError ||
  error instanceof LeaseLostError;

/**
 * Commits a change, again and again while the store fails: a full disk must not end an attempt that
 * has cost money. It waits as long as `wanted` is not aborted, which the time limit of the attempt
 * does. @throws StoreError at once when it is refused, or nothing can be saved any more
 */
export const commitPatiently = async (
  journal: Pick<Journal, 'commit'>,
  change: Change,
  wanted: AbortSignal | undefined,
): Promise<CommitAnswer> => {
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs))
    try {
      return await journal.commit(change);
    } catch (error) {
      if (isLost(error) || wanted === undefined) throw error;
      await delay(pauseMs, undefined, { signal: wanted }).catch(() => {});
      if (wanted.aborted) throw error;
    }
};
