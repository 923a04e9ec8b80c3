import { join } from 'node:path';
import type { Database } from '../store/rows.ts';
import type { EditRows } from '../store/write-changes.ts';
import { issueOf } from './issue-line.ts';
import { findBdData } from './ownership.ts';
import { createTaskTable, type TaskTable } from './task-table.ts';

/** The name in `.beads` that shows that bd keeps the tasks; undefined while they are kept here. */
export const bdDataOf = (projectRoot: string): string | undefined =>
  findBdData(join(projectRoot, '.beads'));

/** The tables of the tasks, and the edits of them that a change of the store holds. */
export interface OwnTasks extends EditRows {
  readonly table: TaskTable;
  /** Calls the listener after each edit. */
  onEdit(listener: () => void): void;
}

export const createOwnTasks = (db: Database, projectRoot: string): OwnTasks => {
  const table = createTaskTable(db);
  let edited = (): void => {};
  return {
    table,
    onEdit: (listener) => {
      edited = listener;
    },
    read: table.rows,
    isCurrent: ({ revision }, row) =>
      bdDataOf(projectRoot) === undefined &&
      (row === null ? null : Number(row['revision'])) === revision,
    *write({ id, line, base }, row) {
      if (line === null) yield* table.remove(id, row);
      else if (base === undefined) yield* table.putOver(row, issueOf(line));
      else yield* table.putMerged(row, issueOf(line), { line, base });
      edited();
    },
  };
};
