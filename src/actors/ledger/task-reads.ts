import type { TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { Database, Row } from '../store/database.ts';
import type { PageRequest } from '../tracker/port.ts';
import { trackedFrom } from './issue.ts';
import { issueOf } from './issue-line.ts';
import { columnText, type TaskStatements } from './task-statements.ts';

export interface StoredTask {
  readonly line: string;
  /** The line that the file held last; empty when it never held the task. */
  readonly base: string;
  /** True when it changed here since the file was written. */
  readonly isAhead: boolean;
  /** Rises with each change of the task, and when it becomes ready or blocked. */
  readonly revision: number;
  /** Its blockers that are not done, read when asked. */
  readonly unmet: () => readonly TaskId[];
}

export interface StoredTaskReads {
  /** Number of tasks, without deleted ones. */
  count(): number;
  /** Number of tasks of a page without limit. */
  countOf(request: Pick<PageRequest, 'status' | 'unblocked'>): number;
  tracked(id: string): TrackedTask | null;
  /** A task, deleted or not, with all that its row says of it. */
  stored(id: string): StoredTask | null;
  dependents(id: string): readonly TrackedTask[];
  /** As `TrackerReads.matching`. Reads every id, without its row. */
  matching(text: string, limit: number): readonly TrackedTask[];
  /** Tasks in the order of their creation. */
  page(request: PageRequest): readonly TrackedTask[];
  /**
   * Tasks that changed after a revision, in that order, about `limit`; and the revision up to which
   * these are.
   */
  changedSince(
    revision: number,
    limit: number,
  ): { readonly tasks: readonly TrackedTask[]; readonly revision: number };
}

const rowsByCreation = (one: Row, other: Row): number => {
  const [a, b] = [`${one['created_at']} ${one['id']}`, `${other['created_at']} ${other['id']}`];
  return a < b ? -1 : a > b ? 1 : 0;
};
const byNewest = (one: Row, other: Row): number => rowsByCreation(other, one);
/** Before and behind every time of creation. */
const listEnds = {
  oldest: { createdAt: '', id: '' },
  newest: { createdAt: '\uffff', id: '' },
} as const;

const unmetOf = (sql: TaskStatements, row: Row): readonly TaskId[] =>
  Number(row['unmet']) === 0
    ? []
    : sql.unmet.all(columnText(row, 'id')).map((each) => columnText(each, 'depends_on') as TaskId);

const rowsOf = (
  sql: TaskStatements,
  { status, unblocked = false, order = 'oldest', after, limit }: PageRequest,
): readonly Row[] => {
  const { createdAt, id } = after ?? listEnds[order];
  if (status === undefined) return sql.pages[order].all(createdAt, id, limit);
  const pages = sql.pagesOf[order];
  const open = pages.all(status, 0, createdAt, id, limit);
  if (unblocked) return open;
  const blocked = pages.all(status, 1, createdAt, id, limit);
  const inOrder = order === 'oldest' ? rowsByCreation : byNewest;
  return [...open, ...blocked].sort(inOrder).slice(0, limit);
};

const countTasks = (
  sql: TaskStatements,
  { status, unblocked = false }: Pick<PageRequest, 'status' | 'unblocked'>,
): number => {
  const row =
    status === undefined ? sql.count.first() : sql.countOf.first(status, unblocked ? 0 : 1);
  return Number(row?.['count']);
};

export const createTaskReads = (db: Database, sql: TaskStatements): StoredTaskReads => {
  const trackedOf = (row: Row): TrackedTask =>
    trackedFrom(issueOf(columnText(row, 'line')), unmetOf(sql, row));

  return {
    count: () => countTasks(sql, {}),
    countOf: (request) => countTasks(sql, request),
    tracked: (id) => {
      const row = sql.row.first(id);
      return row === null || row['status'] === 'tombstone' ? null : trackedOf(row);
    },
    stored: (id) => {
      const row = sql.row.first(id);
      if (row === null) return null;
      const line = columnText(row, 'line');
      const isAhead = row['base'] !== null;
      return {
        line,
        base: isAhead ? columnText(row, 'base') : line,
        isAhead,
        revision: Number(row['revision']),
        unmet: () => unmetOf(sql, row),
      };
    },
    matching: (text, limit) => sql.matching.all(text, limit).map(trackedOf),
    dependents: (id) => sql.dependents.all(id).map(trackedOf),
    page: (request) => rowsOf(sql, request).map(trackedOf),
    changedSince: (revision, limit) =>
      db.read(() => {
        const rows = sql.changed.all(revision, limit);
        const last = rows.at(-1)?.['revision'] ?? revision;
        // A change and the tasks that it unblocks have one revision.
        const ids = new Set(rows.map(({ id }) => id));
        const rest =
          rows.length < limit
            ? []
            : sql.atRevision.all(last).filter(({ id }) => !ids.has(id ?? null));
        return { tasks: [...rows, ...rest].map(trackedOf), revision: Number(last) };
      }),
  };
};
