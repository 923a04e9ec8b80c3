import type { Database } from '../store/database.ts';
import type { IssueTable } from './issue.ts';
import { issueOf } from './issue-line.ts';
import { createTaskReads, type StoredTaskReads } from './task-reads.ts';
import { columnText, prepareTaskStatements } from './task-statements.ts';
import { createTaskWrites, type TaskWrites } from './task-writes.ts';

export interface ChangeMark {
  /**
   * The revision up to which a server has looked at the changes; 0 at first. Kept for the next
   * server.
   */
  lookedUpTo(): number;
  lookedAt(revision: number): void | Promise<void>;
}

/** The tasks of a project without bd. */
export type TaskTable = IssueTable & StoredTaskReads & TaskWrites & ChangeMark;

export const createTaskTable = (db: Database): TaskTable => {
  const sql = prepareTaskStatements(db);
  return {
    ...createTaskReads(db, sql),
    ...createTaskWrites(sql),
    get: (id) => {
      const row = sql.get.first(id);
      return row === null ? undefined : issueOf(columnText(row, 'line'));
    },
    has: (id) => sql.get.first(id) !== null,
    get size() {
      return Number(sql.size.first()?.['size']);
    },
    lookedUpTo: () => Number(sql.looked.first()?.['value'] ?? 0),
    lookedAt: (revision) => db.write(() => void sql.look.run(String(revision))),
  };
};
