import type Sqlite from 'libsql';

const hasGuardColumns = (db: Sqlite.Database): boolean =>
  db.prepare("select 1 from pragma_table_info('actors') where name = 'revision'").all().length > 0;

/** Version 2.1 has no columns for guards. */
export const addGuardColumns = (db: Sqlite.Database): void => {
  if (hasGuardColumns(db)) return;
  db.exec('begin immediate');
  try {
    // Another process may have added them meanwhile.
    if (!hasGuardColumns(db))
      db.exec(`alter table actors add column revision integer not null default 0;
        alter table actors add column live_attempt integer not null default 0;
        update actors set revision = 1;
        update actors set live_attempt = coalesce(json_extract(snapshot, '$.context.attempt'), 0)
          where json_type(snapshot, '$.value.started') is not null`);
    db.exec('commit');
  } catch (error) {
    if (db.inTransaction) db.exec('rollback');
    throw error;
  }
};
