import type { Database } from '../store/database.ts';
import type { Issue } from './issue.ts';
import { issueOf } from './issue-line.ts';
import { changedKeys, mergeIssue } from './merge-issue.ts';
import type { TaskTable } from './task-table.ts';

/** The effect of an import on one task. */
export interface ImportedChange {
  readonly taskId: string;
  readonly what: 'added' | 'changed' | 'removed';
  /** Keys of bd's form whose values changed. */
  readonly keys: readonly string[];
}

export interface Imports {
  /** Merges a line of the file into the tables; null when it changes nothing. Inside a transaction. */
  takeLine(line: string): ImportedChange | null;
  /** Removes a task that the file held last and holds no more, unless it changed here since. Inside a transaction. */
  takeVanished(id: string): ImportedChange | null;
}

/** Three-way: the tables, the file, and the line that the file held last. */
export const createImports = (db: Database, table: TaskTable): Imports => {
  const stored = db.prepare('select line, base from tasks where id = ?');
  const pending = db.prepare('select 1 as one from actors where id = ? and pending = 1');
  /** An attempt of ours works on a task that is claimed and whose actor must run after a restart. */
  const isLive = ({ id, status }: Issue): boolean => status === 'in_progress' && pending.first(id) !== null;

  const merged = (line: string, theirs: Issue, ourLine: string, base: string | null): Issue => {
    const ours = issueOf(ourLine);
    if (ourLine === line || (base === null && !isLive(ours))) return theirs;
    return mergeIssue({ base: base === '' ? null : issueOf(base ?? ourLine), ours, theirs, isLive: isLive(ours) });
  };

  return {
    takeLine: (line) => {
      const theirs = issueOf(line);
      const row = stored.first(theirs.id);
      if (row === null) {
        table.putMerged(theirs, { line, base: line });
        return { taskId: theirs.id, what: 'added', keys: [] };
      }
      const ourLine = String(row['line']);
      const base = row['base'] === null ? null : String(row['base']);
      if ((base ?? ourLine) === line) return null;
      const ours = issueOf(ourLine);
      const next = merged(line, theirs, ourLine, base);
      const isTheirs = changedKeys(next, theirs).length === 0;
      table.putMerged(next, { line: isTheirs ? line : JSON.stringify(next), base: line });
      const keys = changedKeys(ours, next).filter((key) => key !== 'updated_at');
      return keys.length === 0 ? null : { taskId: theirs.id, what: 'changed', keys };
    },
    takeVanished: (id) => {
      const row = stored.first(id);
      if (row === null || row['base'] === '') return null;
      const line = String(row['line']);
      if (row['base'] === null && !isLive(issueOf(line))) {
        table.remove(id);
        return { taskId: id, what: 'removed', keys: [] };
      }
      table.putMerged(issueOf(line), { line, base: '' });
      return null;
    },
  };
};
