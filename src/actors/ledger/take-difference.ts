import type { TaskEdit } from '../store/port.ts';
import type { Database, Work } from '../store/rows.ts';
import type { Issue } from './issue.ts';
import { issueOf } from './issue-line.ts';
import { lineOf } from './issue-text.ts';
import { changedKeys, mergeIssue } from './merge-issue.ts';
import type { StoredTask, StoredTaskReads } from './task-reads.ts';

/** The effect of an import on one task. */
export interface ImportedTask {
  readonly edit: TaskEdit;
  /** For the journal; null when people see no difference. */
  readonly news: {
    readonly what: 'added' | 'changed' | 'removed';
    /** Keys of bd's form whose values changed. */
    readonly keys: readonly string[];
  } | null;
}

export interface Imports {
  /** Merges a line of the file with the task; null when it changes nothing. */
  takeLine(line: string): Work<ImportedTask | null>;
  /** Removes a task that the file held last and holds no more, unless it changed here since. */
  takeVanished(id: string): Work<ImportedTask | null>;
}

/** Three-way: the tables, the file, and the line that the file held last. */
export const createImports = (db: Database, table: Pick<StoredTaskReads, 'stored'>): Imports => {
  const pending = db.prepare('select 1 as one from actors where id = ? and pending = 1');
  /**
   * An attempt of ours works on a task that is claimed and whose actor must run after a restart.
   */
  const isLive = function* ({ id, status }: Issue): Work<boolean> {
    return status === 'in_progress' && (yield* pending.first(id)) !== null;
  };

  const merged = function* (
    line: string,
    theirs: Issue,
    ours: Issue,
    stored: StoredTask,
  ): Work<Issue> {
    if (stored.line === line) return theirs;
    const isAtWork = yield* isLive(ours);
    if (!stored.isAhead && !isAtWork) return theirs;
    const base = stored.base === '' ? null : issueOf(stored.base);
    return mergeIssue({ base, ours, theirs, isLive: isAtWork });
  };

  return {
    *takeLine(line) {
      const theirs = issueOf(line);
      const { id } = theirs;
      const found = yield* table.stored(id);
      if (found === null)
        return {
          edit: { id, revision: null, line, base: line },
          news: { what: 'added', keys: [] },
        };
      if (found.base === line) return null;
      const ours = issueOf(found.line);
      const next = yield* merged(line, theirs, ours, found);
      const isTheirs = changedKeys(next, theirs).length === 0;
      const keys = changedKeys(ours, next).filter((key) => key !== 'updated_at');
      return {
        edit: {
          id,
          revision: found.revision,
          line: isTheirs ? line : lineOf(next, line),
          base: line,
        },
        news: keys.length === 0 ? null : { what: 'changed', keys },
      };
    },
    *takeVanished(id) {
      const found = yield* table.stored(id);
      if (found === null || found.base === '') return null;
      const { line, revision, isAhead } = found;
      if (!isAhead && !(yield* isLive(issueOf(line))))
        return { edit: { id, revision, line: null }, news: { what: 'removed', keys: [] } };
      return { edit: { id, revision, line, base: '' }, news: null };
    },
  };
};
