import type { TaskId } from '../../machines/task.ts';
import type { PageRequest, TrackedTask } from '../../machines/tracked-task.ts';
import {
  createRowRead,
  type Database,
  manyPlaces,
  type Row,
  rowsOfMany,
  type Work,
} from '../store/rows/rows.ts';

import { parents, trackedFrom } from './issue.ts';
import { issueOf } from './issue-line.ts';

export type TaskStatements = ReturnType<typeof prepareTaskStatements>;

export const columnText = (row: Row, column: string): string => String(row[column] ?? '');

const preparePages = (db: Database, inOrder: string) => {
  const pages = (isBlocked: string) =>
    db.prepare(
      `select * from tasks where status = ? and (unmet > 0) = ${isBlocked} and ${inOrder} limit ?`,
    );
  return { open: pages('false'), blocked: pages('true') };
};

/** The revision of the change that `nextRevision` began. */
const revision = "(select cast(value as integer) from ledger where key = 'revision')";

/** `few` looks each task at work up; `many` goes through the tasks in order until a page is full. */
const preparePageAtWork = (db: Database, inOrder: string) => ({
  few: db.prepare(
    `with at_work (task) as materialized (select id from actors where pending = 1)
     select tasks.* from at_work cross join tasks where tasks.id = task
       and status <> 'tombstone' and status <> ? and ${inOrder} limit ?`,
  ),
  many: db.prepare(
    `select tasks.* from tasks join actors on actors.id = tasks.id
     where actors.pending = 1 and status <> 'tombstone' and status <> ? and ${inOrder} limit ?`,
  ),
});
const manyAtWork = 1_000;

export const prepareTaskStatements = (db: Database) => ({
  get: db.prepare('select line from tasks where id = ?'),
  row: db.prepare('select * from tasks where id = ?'),
  rows: createRowRead(db, 'select * from tasks where id'),
  many: db.prepare(`select * from tasks where status <> 'tombstone' and id in (${manyPlaces})`),
  newest: db.prepare('select id, position from tasks order by position desc limit 20'),
  count: db.prepare(
    "select coalesce(sum(count), 0) as count from task_counts where status <> 'tombstone'",
  ),
  unmet: db.prepare(
    `select depends_on from dependencies left join tasks on tasks.id = depends_on
     where task_id = ? and coalesce(tasks.done, 0) = 0`,
  ),
  unmetOf: db.prepare(
    `select task_id, depends_on from dependencies left join tasks on tasks.id = depends_on
     where task_id in (${manyPlaces}) and coalesce(tasks.done, 0) = 0 order by task_id, depends_on`,
  ),
  dependents: db.prepare(
    `select tasks.* from dependencies join tasks on tasks.id = task_id
     where depends_on = ? and status <> 'tombstone'`,
  ),
  matching: db.prepare(
    `select * from tasks where id in (select id from tasks where substr(id, 1, length(?1)) = ?1
       or substr(id, length(id) - length(?1) + 1) = ?1 or replace(id, '-' || ?1, '') <> id) and status <> 'tombstone'
     order by id limit ?2`,
  ),
  dependsOn: db.prepare('select depends_on from dependencies where task_id = ?'),
  undepend: db.prepare('delete from dependencies where task_id = ?'),
  depend: db.prepare(
    'insert into dependencies (task_id, depends_on) values (?, ?) on conflict do nothing',
  ),
  insert: db.prepare(
    `insert into tasks (id, line, base, status, done, created_at, unmet, revision)
     values (?, ?, ?, ?, ?, ?, 0, ${revision})`,
  ),
  /** As the file has it; it is no change. */
  insertFirst: db.prepare(
    `insert into tasks (id, line, base, status, done, created_at, unmet, revision)
     values (?, ?, null, ?, ?, ?, 0, 0)`,
  ),
  update: db.prepare(
    `update tasks set line = ?, base = ?, status = ?, done = ?, created_at = ?,
       revision = ${revision} where id = ?`,
  ),
  recount: db.prepare(
    `update tasks set unmet = (select count(*) from dependencies left join tasks as blocker on blocker.id = depends_on
       where task_id = tasks.id and coalesce(blocker.done, 0) = 0) where id = ?`,
  ),
  recountDependents: db.prepare(
    `update tasks set unmet = (select count(*) from dependencies left join tasks as blocker on blocker.id = depends_on
       where task_id = tasks.id and coalesce(blocker.done, 0) = 0), revision = ${revision}
     where id in (select task_id from dependencies where depends_on = ?)`,
  ),
  recountAll: db.prepare(
    `update tasks set unmet = (select count(*) from dependencies left join tasks as blocker on blocker.id = depends_on
       where task_id = tasks.id and coalesce(blocker.done, 0) = 0) where id in (select task_id from dependencies)`,
  ),
  remove: db.prepare('delete from tasks where id = ?'),
  nextRevision: db.prepare(
    `insert into ledger (key, value) values ('revision', '1')
     on conflict (key) do update set value = cast(cast(ledger.value as integer) + 1 as text)`,
  ),
  /** The mark is -1 without one: libsql takes no null as the only value. */
  news: db.prepare(
    `with state as (
       select coalesce((select cast(value as bigint) from ledger where key = 'looked'), 0) as looked,
         cast(? as bigint) as mark
     ) select looked, cast(exists (
       select 1 from tasks where status <> 'tombstone'
         and revision > case when mark < 0 then looked else mark end
     ) as integer) as changed from state`,
  ),
  look: db.prepare(
    "insert into ledger (key, value) values ('looked', ?) on conflict (key) do update set value = excluded.value",
  ),
  changed: db.prepare(
    "select * from tasks where revision > ? and status <> 'tombstone' order by revision limit ?",
  ),
  atRevision: db.prepare("select * from tasks where revision = ? and status <> 'tombstone'"),
  pages: {
    oldest: db.prepare(
      `select * from tasks where status <> 'tombstone' and (created_at, id) > (?, ?)
       order by created_at, id limit ?`,
    ),
    newest: db.prepare(
      `select * from tasks where status <> 'tombstone' and (created_at, id) < (?, ?)
       order by created_at desc, id desc limit ?`,
    ),
  },
  /** Up to `manyAtWork`. */
  countAtWork: db.prepare(
    `select count(*) as count
     from (select 1 as one from actors where pending = 1 limit ${manyAtWork}) as at_work`,
  ),
  pagesAtWork: {
    oldest: preparePageAtWork(db, '(created_at, tasks.id) > (?, ?) order by created_at, tasks.id'),
    newest: preparePageAtWork(
      db,
      '(created_at, tasks.id) < (?, ?) order by created_at desc, tasks.id desc',
    ),
  },
  pagesOf: {
    oldest: preparePages(db, '(created_at, id) > (?, ?) order by created_at, id'),
    newest: preparePages(db, '(created_at, id) < (?, ?) order by created_at desc, id desc'),
  },
  countOf: db.prepare(
    'select coalesce(sum(count), 0) as count from task_counts where status = ? and blocked <= ?',
  ),
});

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
