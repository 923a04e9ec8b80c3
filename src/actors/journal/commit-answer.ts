import { StoreError } from '../store/port.ts';

export const staleCommit = (): StoreError =>
  new StoreError('the task was changed by another request at the same time; try again');
export const lateCommit = (): StoreError =>
  new StoreError('the store did not answer in time; try again');

export interface CommitDeadline {
  readonly deadlineMs: number;
  /** @returns cancels the timer */
  later(run: () => void, ms: number): () => void;
}

const runLater: CommitDeadline['later'] = (run, ms) => {
  const timer = setTimeout(run, ms).unref();
  return () => clearTimeout(timer);
};

/** For one answer of the store. */
export const storeDeadline: CommitDeadline = { deadlineMs: 4_000, later: runLater };

/**
 * For a transition, which may wait behind another commit; both may be tried again, also after an
 * outage of `outageMs`.
 */
export const transitionDeadline = (outageMs: number): CommitDeadline => ({
  deadlineMs: 20_000 + outageMs,
  later: runLater,
});
