import { createRowRead } from '../store/read-rows.ts';
import { type Database, manyPlaces, type Row } from '../store/rows.ts';

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
export const manyAtWork = 1_000;

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
