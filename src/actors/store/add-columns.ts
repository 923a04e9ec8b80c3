import type Sqlite from 'libsql';

interface Addition {
  readonly table: string;
  /** One of the columns. */
  readonly column: string;
  readonly sql: string;
}

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
];

/** Adds the columns that the tables of version 2.1 lack. */
export const addColumns = (db: Sqlite.Database): void => {
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
