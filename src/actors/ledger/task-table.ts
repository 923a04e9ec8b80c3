import type { Answer } from '../store/port.ts';
import type { Database, Work } from '../store/rows.ts';
import type { IssueTable } from './issue.ts';
import { issueOf } from './issue-line.ts';
import { createTaskReads, type StoredTaskReads } from './task-reads.ts';
import { columnText, prepareTaskStatements } from './task-statements.ts';
import { createTaskWrites, type TaskWrites } from './task-writes.ts';

export interface ChangeMark {
  /**
   * `looked`: the revision up to which a server has looked at the changes; 0 at first. Kept for the
   * next server. `isAny`: a task changed after the mark; null: after `looked`. One statement, since
   * every server asks all the time.
   */
  news(mark: number | null): Work<{ readonly looked: number; readonly isAny: boolean }>;
  lookedAt(revision: number): Answer<void>;
}

/** The tasks of a project without bd. */
export type TaskTable = IssueTable & StoredTaskReads & TaskWrites & ChangeMark;

export const createTaskTable = (db: Database): TaskTable => {
  const sql = prepareTaskStatements(db);
  return {
    ...createTaskReads(sql, db),
    ...createTaskWrites(sql, db),
    *get(id) {
      const row = yield* sql.get.first(id);
      return row === null ? undefined : issueOf(columnText(row, 'line'));
    },
    *has(id) {
      return (yield* sql.get.first(id)) !== null;
    },
    *newest() {
      const rows = yield* sql.newest.all();
      return { size: Number(rows[0]?.['position'] ?? 0), ids: rows.map(({ id }) => String(id)) };
    },
    *news(mark) {
      const row = yield* sql.news.first(mark ?? -1);
      return { looked: Number(row?.['looked'] ?? 0), isAny: Number(row?.['changed']) === 1 };
    },
    lookedAt: (revision) =>
      db.write(function* () {
        yield* sql.look.run(String(revision));
      }),
  };
};
