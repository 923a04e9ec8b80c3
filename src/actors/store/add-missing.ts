import type Sqlite from 'libsql';

interface Addition {
  readonly table: string;
  readonly column: string;
  readonly sql: string;
}

/** Number of tasks by status, and by whether blockers are left; kept by the writes of `tasks`. */
const taskCounts = `
create table task_counts (
  status text not null,
  blocked integer not null,
  count integer not null,
  primary key (status, blocked)
) without rowid;
insert into task_counts select status, unmet > 0, count(*) from tasks group by 1, 2;
create trigger task_added after insert on tasks begin
  insert or ignore into task_counts values (new.status, new.unmet > 0, 0);
  update task_counts set count = count + 1 where status = new.status and blocked = (new.unmet > 0);
end;
create trigger task_removed after delete on tasks begin
  update task_counts set count = count - 1 where status = old.status and blocked = (old.unmet > 0);
end;
create trigger task_moved after update of status, unmet on tasks
when old.status <> new.status or (old.unmet > 0) <> (new.unmet > 0) begin
  insert or ignore into task_counts values (new.status, new.unmet > 0, 0);
  update task_counts set count = count + 1 where status = new.status and blocked = (new.unmet > 0);
  update task_counts set count = count - 1 where status = old.status and blocked = (old.unmet > 0);
end`;

const additions: readonly Addition[] = [
  {
    table: 'actors',
    column: 'revision',
    sql: `alter table actors add column revision integer not null default 0;
      alter table actors add column live_attempt integer not null default 0;
      update actors set revision = 1;
      update actors set live_attempt = coalesce(json_extract(snapshot, '$.context.attempt'), 0)
        where json_type(snapshot, '$.value.started') is not null`,
  },
  {
    table: 'journal',
    column: 'hash',
    sql: `alter table journal add column base integer;
      alter table journal add column previous text;
      alter table journal add column hash text;
      insert or ignore into histories (task_id, last_hash) select distinct task_id, '' from journal`,
  },
  { table: 'actors', column: 'owner', sql: 'alter table actors add column owner text' },
  { table: 'attempts', column: 'owner', sql: 'alter table attempts add column owner text' },
  {
    table: 'histories',
    column: 'last_task_seq',
    sql: `alter table histories add column last_task_seq integer not null default 0;
      alter table histories add column removed_task_seq integer`,
  },
  {
    table: 'journal',
    column: 'task_seq',
    // How many entries were removed before is not known: what is left begins at 1.
    sql: `alter table journal add column task_seq integer not null default 0;
      update journal set task_seq = numbered.number from (
        select seq, row_number() over (partition by task_id order by seq) as number from journal
      ) as numbered where numbered.seq = journal.seq;
      update histories set
        last_task_seq = (select count(*) from journal where task_id = histories.task_id);
      update histories set removed_task_seq = (
        select count(*) from journal where task_id = histories.task_id and seq <= removed_seq
      ) where removed_seq is not null`,
  },
  {
    table: 'actors',
    column: 'waits_role',
    sql: `alter table actors add column waits_role text;
      alter table actors add column waits_priority integer`,
  },
  {
    table: 'nodes',
    column: 'slots',
    sql: `alter table nodes add column name text not null default '';
      alter table nodes add column joined integer not null default 0;
      alter table nodes add column slots integer not null default 0;
      alter table nodes add column usable integer not null default 0;
      alter table nodes add column waiting integer not null default 0;
      alter table nodes add column facts text`,
  },
  {
    table: 'actors',
    column: 'restores',
    sql: 'alter table actors add column restores integer not null default 0',
  },
  {
    table: 'task_counts',
    column: 'count',
    sql: taskCounts,
  },
];

/** Adds what databases of earlier versions lack, filled from what they have. */
export const addMissing = (db: Sqlite.Database): void => {
  const isMissing = ({ table, column }: Addition): boolean =>
    db.prepare('select 1 from pragma_table_info(?) where name = ?').all(table, column).length === 0;
  if (!additions.some(isMissing)) return;
  db.exec('begin immediate');
  try {
    // Another process may have added some meanwhile.
    for (const addition of additions) if (isMissing(addition)) db.exec(addition.sql);
    db.exec('commit');
  } catch (error) {
    if (db.inTransaction) db.exec('rollback');
    throw error;
  }
};
