import type { Issue, IssueTable } from './issue.ts';

/** Changes on top of the issues of a document, which stay as they are until the changes are on disk. */
export interface IssueOverlay extends IssueTable {
  set(id: string, issue: Issue): void;
  /** The new issues, when nothing that was there before has changed; else null. */
  onlyAdded(): readonly Issue[] | null;
  merged(): Map<string, Issue>;
  /** Puts the changes into the issues below. */
  apply(): void;
}

export const createOverlay = (base: Map<string, Issue>): IssueOverlay => {
  const changes = new Map<string, Issue>();
  let added = 0;
  return {
    get: (id) => changes.get(id) ?? base.get(id),
    has: (id) => changes.has(id) || base.has(id),
    get size() {
      return base.size + added;
    },
    set: (id, issue) => {
      if (!changes.has(id) && !base.has(id)) added += 1;
      changes.set(id, issue);
    },
    onlyAdded: () => (added === changes.size ? [...changes.values()] : null),
    merged: () => new Map([...base, ...changes]),
    apply: () => {
      for (const [id, issue] of changes) base.set(id, issue);
    },
  };
};
