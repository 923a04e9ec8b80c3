import type { TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import { type Database, type Row, rowsOfMany, type Work } from '../store/rows.ts';
import type { PageRequest } from '../tracker/port.ts';
import { parents, trackedFrom } from './issue.ts';
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

type Ids = readonly TaskId[];

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

/** The blockers of tasks that others are a part of, each read once. */
const createParents = (sql: TaskStatements) => {
  const read = new Map<string, { readonly above: Ids; readonly unmet: Ids } | null>();
  const look = function* (id: string) {
    const seen = read.get(id);
    if (seen !== undefined) return seen;
    const row = yield* sql.row.first(id);
    const isOver = row === null || Number(row['done']) === 1;
    const found = isOver
      ? null
      : { above: parents(issueOf(columnText(row, 'line'))), unmet: yield* unmetOf(sql, row) };
    read.set(id, found);
    return found;
  };
  /** With those that they are a part of. */
  const withWholes = function* (ids: Ids): Work<ReadonlySet<TaskId>> {
    const all = new Set(ids);
    for (const id of all) for (const above of (yield* look(id))?.above ?? []) all.add(above);
    return all;
  };
  return {
    /** A part waits for what its whole waits for, unless that is a part of the same whole. */
    *unmet(own: TaskId, above: Ids): Work<Ids> {
      const unmet: TaskId[] = [];
      for (const whole of yield* withWholes(above)) {
        if (whole === own) continue;
        for (const id of (yield* look(whole))?.unmet ?? [])
          if (id !== own && !(yield* withWholes([id])).has(whole)) unmet.push(id);
      }
      return unmet;
    },
  };
};

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

export const createTaskReads = (
  sql: TaskStatements,
  db: Pick<Database, 'now'>,
): StoredTaskReads => {
  const allTracked = function* (rows: readonly Row[]): Work<readonly TrackedTask[]> {
    const blocked = rows.filter((row) => Number(row['unmet']) > 0);
    const ids = blocked.map((row) => columnText(row, 'id'));
    const unmet = new Map<string, TaskId[]>(ids.map((id) => [id, []]));
    for (const row of yield* rowsOfMany(sql.unmetOf, ids))
      unmet.get(columnText(row, 'task_id'))?.push(columnText(row, 'depends_on') as TaskId);
    const wholes = createParents(sql);
    const tracked: TrackedTask[] = [];
    // Only what is deferred needs the time.
    const isTimed = rows.some((row) => columnText(row, 'line').includes('"defer_until"'));
    const now = isTimed ? yield* db.now() : 0;
    for (const row of rows) {
      const issue = issueOf(columnText(row, 'line'));
      const id = issue.id as TaskId;
      const all = [...(unmet.get(id) ?? []), ...(yield* wholes.unmet(id, parents(issue)))];
      const facts = { createdAt: columnText(row, 'created_at'), now };
      tracked.push(trackedFrom(issue, [...new Set(all)], facts));
    }
    return tracked;
  };

  return {
    count: () => countTasks(sql, {}),
    countOf: (request) => countTasks(sql, request),
    *tracked(id) {
      const row = yield* sql.row.first(id);
      if (row === null || row['status'] === 'tombstone') return null;
      return (yield* allTracked([row]))[0] ?? null;
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
        *unmet() {
          const above = parents(issueOf(line));
          const inherited = yield* createParents(sql).unmet(id as TaskId, above);
          return [...new Set([...(yield* unmetOf(sql, row)), ...inherited])];
        },
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
