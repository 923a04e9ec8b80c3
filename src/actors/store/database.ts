import { dirname } from 'node:path';
import type Sqlite from 'libsql';
import { messageOf } from '../../machines/message-of.ts';
import { createWriteCheck } from '../files/free-space.ts';
import { openFile } from './open-file.ts';
import { DatabaseHeldError, StoreError } from './port.ts';
import { type Database, known, type Row, type Statement, type Work, whenTaken } from './rows.ts';
import { createSameFileCheck } from './same-file.ts';
import { lazy } from './store-statements.ts';
import { createTransactions, type HeldWait, isBusy } from './transactions.ts';

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
  const write: SqliteDatabase['write'] = (work) => transactions.write(() => resultOf(work()));

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
