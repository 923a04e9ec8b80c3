import { chmodSync } from 'node:fs';
import Sqlite from 'libsql';
import { addMissing } from './add-missing.ts';
import { indexesOfAdded, schema } from './schema.ts';

/** Opening may write the schema; it waits longer for other programs than a server's writes do. */
const openMs = 5_000;

/** Opens a database of this or an earlier version. `blockingMs`: longest wait of a later write. */
export const openFile = (
  { file, readonly = false }: { readonly file: string; readonly readonly?: boolean },
  blockingMs: number,
): Sqlite.Database => {
  const db = new Sqlite(file, { timeout: openMs });
  if (readonly) {
    // libsql takes the option `readonly` and ignores it.
    db.pragma('query_only = on');
    // What cannot be read is said here, not at the first question.
    db.prepare('select count(*) from sqlite_schema').all();
    return db;
  }
  // Pages that become free go back to the file system (`Histories.shrink`). Only an empty database
  // takes it, and one with content could not be opened with it on a full disk.
  if (db.pragma('page_count', { simple: true }) === 0) db.pragma('auto_vacuum = incremental');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(schema);
  addMissing(db);
  db.exec(indexesOfAdded);
  db.pragma(`busy_timeout = ${blockingMs}`);
  if (file !== ':memory:') chmodSync(file, 0o600);
  return db;
};
