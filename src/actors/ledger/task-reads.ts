import type { TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { type Row, rowsOfMany, type Work } from '../store/rows.ts';
import type { PageRequest } from '../tracker/port.ts';
import { trackedFrom } from './issue.ts';
import { issueOf } from './issue-line.ts';
import { columnText, manyAtWork, type TaskStatements } from './task-statements.ts';

export interface StoredTask {
  readonly line: string;
  /** The line that the file held last; empty when it never held the task. */
  readonly base: string;
  /** True when it changed here since the file was written. */
  readonly isAhead: boolean;
  /** Rises with each change of the task, and when it becomes ready or blocked. */
  readonly revision: number;
  /** When its line does not say so: the time of the import. */
  readonly createdAt: string;
  /** Its blockers that are not done, read when asked. */
  readonly unmet: () => Work<readonly TaskId[]>;
}

export interface StoredTaskReads {
  /** Number of tasks, without deleted ones. */
  count(): Work<number>;
  /** Number of tasks of a page without limit. */
  countOf(request: Pick<PageRequest, 'status' | 'unblocked'>): Work<number>;
  tracked(id: string): Work<TrackedTask | null>;
  /** Those that there are, in the order of the ids. */
  trackedOf(ids: readonly string[]): Work<readonly TrackedTask[]>;
  /** A task, deleted or not, with all that its row says of it. */
  stored(id: string): Work<StoredTask | null>;
  dependents(id: string): Work<readonly TrackedTask[]>;
  /** As `TrackerReads.matching`. Reads every id, without its row. */
  matching(text: string, limit: number): Work<readonly TrackedTask[]>;
  /** As `TrackerReads.pageAtWork`. */
  pageAtWork(request: PageRequest & { readonly status: string }): Work<readonly TrackedTask[]>;
  /** Tasks in the order of their creation. */
  page(request: PageRequest): Work<readonly TrackedTask[]>;
  /**
   * Tasks that changed after a revision, in that order, about `limit`; and the revision up to which
   * these are. Belongs inside `Database.read`.
   */
  changedSince(
    revision: number,
    limit: number,
  ): Work<{ readonly tasks: readonly TrackedTask[]; readonly revision: number }>;
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

const unmetOf = function* (sql: TaskStatements, row: Row): Work<readonly TaskId[]> {
  if (Number(row['unmet']) === 0) return [];
  const rows = yield* sql.unmet.all(columnText(row, 'id'));
  return rows.map((each) => columnText(each, 'depends_on') as TaskId);
};

const trackedRow = (row: Row, unmet: readonly TaskId[]): TrackedTask =>
  trackedFrom(issueOf(columnText(row, 'line')), unmet, columnText(row, 'created_at'));

const rowsOf = function* (
  sql: TaskStatements,
  { status, unblocked = false, order = 'oldest', after, limit }: PageRequest,
): Work<readonly Row[]> {
  const { createdAt, id } = after ?? listEnds[order];
  if (status === undefined) return yield* sql.pages[order].all(createdAt, id, limit);
  const { open: openPages, blocked: blockedPages } = sql.pagesOf[order];
  const open = yield* openPages.all(status, createdAt, id, limit);
  if (unblocked) return open;
  const blocked = yield* blockedPages.all(status, createdAt, id, limit);
  const inOrder = order === 'oldest' ? rowsByCreation : byNewest;
  return [...open, ...blocked].sort(inOrder).slice(0, limit);
};

const countTasks = function* (
  sql: TaskStatements,
  { status, unblocked = false }: Pick<PageRequest, 'status' | 'unblocked'>,
): Work<number> {
  const found =
    status === undefined ? sql.count.first() : sql.countOf.first(status, unblocked ? 0 : 1);
  const row = yield* found;
  return Number(row?.['count']);
};

export const createTaskReads = (sql: TaskStatements): StoredTaskReads => {
  const trackedOf = function* (row: Row): Work<TrackedTask> {
    return trackedRow(row, yield* unmetOf(sql, row));
  };
  const allTracked = function* (rows: readonly Row[]): Work<readonly TrackedTask[]> {
    const blocked = rows.filter((row) => Number(row['unmet']) > 0);
    const ids = blocked.map((row) => columnText(row, 'id'));
    const unmet = new Map<string, TaskId[]>(ids.map((id) => [id, []]));
    for (const row of yield* rowsOfMany(sql.unmetOf, ids))
      unmet.get(columnText(row, 'task_id'))?.push(columnText(row, 'depends_on') as TaskId);
    return rows.map((row) => trackedRow(row, unmet.get(columnText(row, 'id')) ?? []));
  };

  return {
    count: () => countTasks(sql, {}),
    countOf: (request) => countTasks(sql, request),
    *tracked(id) {
      const row = yield* sql.row.first(id);
      return row === null || row['status'] === 'tombstone' ? null : yield* trackedOf(row);
    },
    *trackedOf(ids) {
      const rows = yield* rowsOfMany(sql.many, ids);
      const found = new Map(rows.map((row) => [columnText(row, 'id'), row]));
      return yield* allTracked(ids.flatMap((id) => (found.has(id) ? [found.get(id) as Row] : [])));
    },
    *stored(id) {
      const row = yield* sql.row.first(id);
      if (row === null) return null;
      const line = columnText(row, 'line');
      const isAhead = row['base'] !== null;
      return {
        line,
        base: isAhead ? columnText(row, 'base') : line,
        isAhead,
        revision: Number(row['revision']),
        createdAt: columnText(row, 'created_at'),
        unmet: () => unmetOf(sql, row),
      };
    },
    *matching(text, limit) {
      return yield* allTracked(yield* sql.matching.all(text, limit));
    },
    *dependents(id) {
      return yield* allTracked(yield* sql.dependents.all(id));
    },
    *page(request) {
      return yield* allTracked(yield* rowsOf(sql, request));
    },
    *pageAtWork({ status, order = 'oldest', after = listEnds[order], limit }) {
      const { few, many } = sql.pagesAtWork[order];
      const count = Number((yield* sql.countAtWork.first())?.['count']);
      const page = count < manyAtWork ? few : many;
      return yield* allTracked(yield* page.all(status, after.createdAt, after.id, limit));
    },
    *changedSince(revision, limit) {
      const rows = yield* sql.changed.all(revision, limit);
      const last = rows.at(-1)?.['revision'] ?? revision;
      // A change and the tasks that it unblocks have one revision.
      const ids = new Set(rows.map(({ id }) => id));
      const others = rows.length < limit ? [] : yield* sql.atRevision.all(last);
      const rest = others.filter(({ id }) => !ids.has(id ?? null));
      return { tasks: yield* allTracked([...rows, ...rest]), revision: Number(last) };
    },
  };
};
