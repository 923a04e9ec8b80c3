import { chmodSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'libsql';
import { messageOf } from '../../machines/message-of.ts';
import { createWriteCheck } from '../files/free-space.ts';
import { addColumns } from './add-columns.ts';
import { StoreError } from './port.ts';
import { schema } from './schema.ts';

export interface DatabaseOptions {
  /** `:memory:` for one that ends with the process. */
  readonly file: string;
  readonly readonly?: boolean;
}

export type Row = Readonly<Record<string, string | number | null>>;
export type Value = string | number | null;

export interface Statement {
  all(...values: readonly Value[]): readonly Row[];
  first(...values: readonly Value[]): Row | null;
  run(...values: readonly Value[]): { readonly rowid: number; readonly changes: number };
}

/**
 * The one SQLite file of a project: journal, actors, steps, requests, tasks. WAL, synced at every
 * commit.
 */
export interface Database {
  readonly file: string;
  prepare(sql: string): Statement;
  /** Runs `work` as one transaction, all or nothing. @throws StoreError, and what `work` throws */
  write<Result>(work: () => Result): Result;
  /** Runs `work` on one state of the database, which no other process changes meanwhile. */
  read<Result>(work: () => Result): Result;
  /** One sentence on whether it can be written. Never throws. */
  check(): { readonly ok: boolean; readonly detail: string };
  close(): void;
}

/** Longest wait for the transaction of another process (ms). */
const busyMs = 5_000;
/** Space that a transaction needs in the write-ahead log (bytes). */
const roomBytes = 64 * 1024;

const tryToOpen = ({ file, readonly = false }: DatabaseOptions): Sqlite.Database => {
  const db = new Sqlite(file, { timeout: busyMs });
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
  addColumns(db);
  if (file !== ':memory:') chmodSync(file, 0o600);
  return db;
};

/** @throws StoreError */
export const openDatabase = (options: DatabaseOptions): Database => {
  const { file } = options;
  let db: Sqlite.Database;
  try {
    db = tryToOpen(options);
  } catch (cause) {
    // SQLite's message names neither file nor cause: `disk I/O error` may mean a full disk.
    throw new StoreError(
      `the journal ${file} cannot be opened (${messageOf(cause)}); is the disk full or read-only, or the file not a journal?`,
      { cause },
    );
  }
  const writes = createWriteCheck(dirname(file));
  const named = <Result>(step: () => Result): Result => {
    try {
      return step();
    } catch (cause) {
      writes.failed(cause, roomBytes);
      throw new StoreError(`the journal ${file} cannot be written: ${messageOf(cause)}`, { cause });
    }
  };
  /** libsql's `transaction` rolls back a second time, and so hides the cause (a full disk). */
  const within = <Result>(begin: string, work: () => Result): Result => {
    if (db.inTransaction) return work();
    named(() => db.exec(begin));
    try {
      const result = work();
      named(() => db.exec('commit'));
      return result;
    } catch (error) {
      if (db.inTransaction) db.exec('rollback');
      throw error;
    }
  };
  const probe = db.prepare('select 1 as one');

  return {
    file,
    prepare: (sql) => {
      const prepared = db.prepare(sql);
      const all = (...values: readonly Value[]) => prepared.all(...values) as readonly Row[];
      return {
        all,
        first: (...values) => (prepared.get(...values) as Row | undefined) ?? null,
        run: (...values) =>
          named(() => {
            const { lastInsertRowid, changes } = prepared.run(...values);
            return { rowid: Number(lastInsertRowid), changes };
          }),
      };
    },
    write: (work) => {
      const result = within('begin immediate', work);
      writes.succeeded();
      return result;
    },
    read: (work) => within('begin', work),
    check: () => {
      try {
        probe.all();
        writes.require(roomBytes);
        return { ok: true, detail: 'the journal can be used' };
      } catch (error) {
        return { ok: false, detail: messageOf(error) };
      }
    },
    close: () => {
      db.close();
    },
  };
};
