import type { Answer } from '../store/port.ts';
import type { Database, Work } from '../store/rows.ts';
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
  lookedUpTo(): Work<number>;
  lookedAt(revision: number): Answer<void>;
}

/** The tasks of a project without bd. */
export type TaskTable = IssueTable & StoredTaskReads & TaskWrites & ChangeMark;

export const createTaskTable = (db: Database): TaskTable => {
  const sql = prepareTaskStatements(db);
  return {
    ...createTaskReads(sql),
    ...createTaskWrites(sql),
    *get(id) {
      const row = yield* sql.get.first(id);
      return row === null ? undefined : issueOf(columnText(row, 'line'));
    },
    *has(id) {
      return (yield* sql.get.first(id)) !== null;
    },
    *size() {
      return Number((yield* sql.size.first())?.['size']);
    },
    *lookedUpTo() {
      return Number((yield* sql.looked.first())?.['value'] ?? 0);
    },
    lookedAt: (revision) =>
      db.write(function* () {
        yield* sql.look.run(String(revision));
      }),
  };
};
