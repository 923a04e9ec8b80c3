import { accessSync, chmodSync, constants, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'libsql';
import { messageOf } from '../../machines/message-of.ts';
import { DatabaseGoneError, DatabaseHeldError, StoreError } from './port.ts';
import {
  type Database,
  known,
  type Riders,
  type Row,
  type Statement,
  type Work,
  whenTaken,
  withRiders,
} from './rows/rows.ts';
import { indexesOfAdded, schema } from './rows/schema.ts';
import { lazy } from './rows/store-statements.ts';
import { createTransactions, type HeldWait, isBusy } from './transactions.ts';

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
    table: 'usage_days',
    column: 'cache_write_tokens',
    sql: `alter table attempts add column cache_write_tokens integer not null default 0;
      alter table usage_days add column cache_write_tokens integer not null default 0`,
  },
  {
    table: 'task_counts',
    column: 'count',
    sql: taskCounts,
  },
];

/** Adds what databases of earlier versions lack, filled from what they have. */
const addMissing = (db: Sqlite.Database): void => {
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

/** Opening may write the schema; it waits longer for other programs than a server's writes do. */
const openMs = 5_000;

/** Opens a database of this or an earlier version. `blockingMs`: longest wait of a later write. */
const openFile = (
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

/**
 * Made when the database is open. The check throws DatabaseGoneError once another file, or none, is
 * at its path.
 */
const createSameFileCheck = (file: string): (() => void) => {
  if (file === ':memory:') return () => {};
  const opened = statSync(file);
  return () => {
    const found = statSync(file, { throwIfNoEntry: false });
    if (found?.ino !== opened.ino || found.dev !== opened.dev)
      throw new DatabaseGoneError(
        `the database ${file} was removed or replaced while it was in use, so nothing can be saved`,
      );
  };
};

export interface DatabaseOptions {
  /** `:memory:` for one that ends with the process. */
  readonly file: string;
  readonly readonly?: boolean;
  /** Limits of a wait for another program. By default a write blocks for 5 s, as a command may. */
  readonly heldWait?: HeldWait;
}

/**
 * The one SQLite file of a project. WAL, synced at every commit. Its reads answer at once; a write
 * answers later while another program holds it.
 */
export interface SqliteDatabase extends Database {
  readonly file: string;
  ask<Result>(work: Work<Result>): Result;
  read<Result>(work: () => Work<Result>): Result;
  check(): { readonly ok: boolean; readonly detail: string };
}

const blockingWait: HeldWait = { blockingMs: 5_000, inPausesMs: 0 };
/** Space that a transaction needs in the write-ahead log (bytes). */
const roomBytes = 64 * 1024;
const pagesAtOnce = 100;

/** @throws StoreError */
const openOrExplain = (options: DatabaseOptions, blockingMs: number): Sqlite.Database => {
  const { file } = options;
  const began = performance.now();
  try {
    return openFile(options, blockingMs);
  } catch (cause) {
    if (isBusy(cause)) throw new DatabaseHeldError(file, performance.now() - began, { cause });
    // SQLite's message names neither file nor cause: `disk I/O error` may mean a full disk.
    throw new StoreError(
      `the journal ${file} cannot be opened (${messageOf(cause)}); is the disk full or read-only, or the file not a journal?`,
      { cause },
    );
  }
};

/** Its statements are answered when they are taken, so it asks nothing. */
const resultOf = <Result>(work: Work<Result>): Result => {
  const step = work[Symbol.iterator]().next();
  if (step.done !== true) throw new Error('work of another database');
  return step.value;
};

/** @throws StoreError */
export const openDatabase = (options: DatabaseOptions): SqliteDatabase => {
  const { file, heldWait = blockingWait } = options;
  const db = openOrExplain(options, heldWait.blockingMs);
  const writes = createWriteCheck(dirname(file));
  const requireFile = createSameFileCheck(file);
  const transactions = createTransactions(db, file, {
    heldWait,
    requireFile,
    onFailure: (cause) => writes.failed(cause, roomBytes),
    onSuccess: writes.succeeded,
  });
  const { isHeld, named } = transactions;
  const probe = db.prepare('select 1 as one');
  let riders: Riders | null = null;
  const write: SqliteDatabase['write'] = withRiders(
    (work) => transactions.write(() => resultOf(work())),
    () => riders,
  );

  const prepare: Database['prepare'] = (sql) => {
    const prepared = db.prepare(sql);
    const run: Statement['run'] = (...values) =>
      whenTaken(() => {
        if (!transactions.isWithin()) throw new Error('a write outside of Database.write');
        return named(() => ({ changes: prepared.run(...values).changes }));
      });
    return {
      run,
      send: run,
      all: (...values) => whenTaken(() => prepared.all(...values) as readonly Row[]),
      first: (...values) => whenTaken(() => (prepared.get(...values) as Row | undefined) ?? null),
    };
  };
  const lastSeq = lazy(() => prepare("select seq from sqlite_sequence where name = 'journal'"));
  const freePages = (): number => Number(db.pragma('freelist_count', { simple: true }));

  return {
    file,
    prepare,
    carry: (given) => {
      riders = given;
    },
    ask: (work) => {
      transactions.isWithin();
      return resultOf(work);
    },
    write,
    read: (work) => transactions.read(() => resultOf(work())),
    *has(table, column) {
      const found = prepare('select 1 from pragma_table_info(?) where name = ?');
      return (yield* found.first(table, column)) !== null;
    },
    now: () => whenTaken(Date.now),
    *lastSeq() {
      return Number((yield* lastSeq().first())?.['seq'] ?? 0);
    },
    mayPause: () => known(undefined),
    added: () => known(undefined),
    // A database of version 2.1 gives nothing back: it fills its free pages again.
    shrink: () =>
      freePages() > 0 &&
      write(() =>
        whenTaken(() => {
          const before = freePages();
          db.pragma(`incremental_vacuum(${pagesAtOnce})`);
          return freePages() < before;
        }),
      ),
    isHeld,
    isOpen: () => db.open,
    check: () => {
      try {
        transactions.isWithin();
        probe.all();
        requireFile();
        if (isHeld()) return { ok: false, detail: `another program holds the database ${file}` };
        writes.require(roomBytes);
        return { ok: true, detail: 'the journal can be used' };
      } catch (error) {
        return { ok: false, detail: messageOf(error) };
      }
    },
    close: () => {
      transactions.close();
      db.close();
    },
  };
};

/** @throws what a write into the folder would throw, as far as a look can tell */
const requireFreeSpace = (folder: string, bytes: number): void => {
  accessSync(folder, constants.W_OK);
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < bytes)
    throw new Error(`ENOSPC: the disk of ${folder} is full (${bavail * bsize} bytes left)`);
};

/** Remembers a failed write, and tells without writing whether the next one would fail. */
interface WriteCheck {
  /** `bytes`: the approximate size of the write. */
  failed(error: unknown, bytes: number): void;
  succeeded(): void;
  require(bytes: number): void;
}

const createWriteCheck = (folder: string): WriteCheck => {
  let failure: { readonly error: unknown; readonly canBeSeen: boolean } | null = null;
  const isSeen = (bytes: number): boolean => {
    try {
      requireFreeSpace(folder, bytes);
      return false;
    } catch {
      return true;
    }
  };
  return {
    failed: (error, bytes) => {
      failure = { error, canBeSeen: isSeen(bytes) };
    },
    succeeded: () => {
      failure = null;
    },
    require: (bytes) => {
      if (failure === null) return;
      requireFreeSpace(folder, bytes);
      // What the look could not see, such as a broken disk, only a successful write disproves.
      if (!failure.canBeSeen) throw failure.error;
    },
  };
};
