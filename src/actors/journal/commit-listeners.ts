import type { Entry } from '../store/port.ts';

type CommitListener = (entries: readonly Entry[]) => void;

/**
 * Calls every listener for each commit, in the order of the commits, also when a listener commits.
 */
export interface CommitListeners {
  /** @returns removes the listener */
  add(listener: CommitListener): () => void;
  notify(entries: readonly Entry[]): void;
}

export const createCommitListeners = (onError: (error: unknown) => void): CommitListeners => {
  const listeners = new Set<CommitListener>();
  const commits: (readonly Entry[])[] = [];
  let notifying = false;
  const call = (listener: CommitListener, entries: readonly Entry[]): void => {
    try {
      listener(entries);
    } catch (error) {
      onError(error);
    }
  };
  return {
    add: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    notify: (entries) => {
      commits.push(entries);
      if (notifying) return;
      notifying = true;
      for (let next = commits.shift(); next !== undefined; next = commits.shift())
        for (const listener of listeners) call(listener, next);
      notifying = false;
    },
  };
};
