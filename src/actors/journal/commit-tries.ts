import {
  type Change,
  ChangeRefusedError,
  type CommitId,
  type Committed,
  DatabaseGoneError,
  DatabaseHeldError,
  LeaseLostError,
  StoreAwayError,
  StoreError,
  type StoreWrites,
} from '../store/port.ts';
import { lateCommit, storeDeadline } from './commit-answer.ts';

export interface Batch {
  readonly id: CommitId;
  /** The next try commits these; each change keeps its position. */
  readonly changes: () => readonly Change[];
}

export interface BatchListener {
  committed(committed: Committed): void;
  /** The last try failed. It may have been carried out. */
  failed(error: unknown): void;
}

/**
 * Commits a batch until the store answers. A failed commit is tried again: by its id the store
 * knows one that it has. @returns true when the listener was called at once
 */
export type CarryOut = (batch: Batch, listener: BatchListener) => boolean;

/** The pauses before the next tries. */
const pausesMs = [100, 400, 1_000];
/** The pause while the store is away. */
const awayPauseMs = 1_000;

/** Without an answer for so long, a commit is not tried again, unless the store may be away. */
const unansweredMs = 5_000;

/** A held database was tried again by itself; what is lost stays lost. */
const mayHelp = (error: unknown): boolean =>
  error instanceof StoreError &&
  !(
    error instanceof ChangeRefusedError ||
    error instanceof DatabaseHeldError ||
    error instanceof DatabaseGoneError ||
    error instanceof LeaseLostError
  );

interface AnswerListener {
  readonly committed: (committed: Committed) => void;
  readonly failed: (error: unknown, waitedMs: number) => void;
}

/** Takes the answer of the store, or its failure, or the end of the time that it has. */
const inTime = (answer: Promise<Committed>, { committed, failed }: AnswerListener): void => {
  let isOpen = true;
  const end = (act: () => void): void => {
    cancel();
    if (!isOpen) return;
    isOpen = false;
    act();
  };
  const { deadlineMs, later } = storeDeadline;
  const cancel = later(() => end(() => failed(lateCommit(), deadlineMs)), deadlineMs);
  answer.then(
    (word) => end(() => committed(word)),
    (error: unknown) => end(() => failed(error, 0)),
  );
};

export const createCarryOut =
  (store: Pick<StoreWrites, 'commit'>, outageMs: number): CarryOut =>
  ({ id, changes }, listener) => {
    const began = performance.now();
    let failures = 0;
    let unanswered = 0;
    /** @returns true when it was the last try */
    const failed = (error: unknown, waitedMs: number): boolean => {
      unanswered += waitedMs;
      const isAway = waitedMs > 0 || error instanceof StoreAwayError;
      const isOutage = isAway && performance.now() - began < outageMs;
      const pauseMs = pausesMs[failures] ?? (isOutage ? awayPauseMs : undefined);
      failures += 1;
      const isOver = pauseMs === undefined || (unanswered > unansweredMs && !isOutage);
      if (!mayHelp(error) || isOver) {
        listener.failed(error);
        return true;
      }
      storeDeadline.later(tryOnce, pauseMs);
      return false;
    };
    const tryOnce = (): boolean => {
      let answer: ReturnType<StoreWrites['commit']>;
      try {
        answer = store.commit({ entries: [], commit: id }, ...changes());
      } catch (error) {
        return failed(error, 0);
      }
      if (answer instanceof Promise) {
        inTime(answer, { committed: listener.committed, failed });
        return false;
      }
      listener.committed(answer);
      return true;
    };
    return tryOnce();
  };
