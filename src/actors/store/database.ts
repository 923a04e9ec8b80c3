import { dirname } from 'node:path';
import type Sqlite from 'libsql';
import { messageOf } from '../../machines/message-of.ts';
import { createWriteCheck } from '../files/free-space.ts';
import { openFile } from './open-file.ts';
import { DatabaseHeldError, StoreError } from './port.ts';
import { createSameFileCheck } from './same-file.ts';
import { createTransactions, type HeldWait, isBusy } from './transactions.ts';

export interface DatabaseOptions {
  /** `:memory:` for one that ends with the process. */
  readonly file: string;
  readonly readonly?: boolean;
  /** Limits of a wait for another program. By default a write blocks for 5 s, as a command may. */
  readonly heldWait?: HeldWait;
}

export type Row = Readonly<Record<string, string | number | null>>;
export type Value = string | number | null;

export interface Statement {
  all(...values: readonly Value[]): readonly Row[];
  first(...values: readonly Value[]): Row | null;
  /** Only inside `Database.write`. */
  run(...values: readonly Value[]): { readonly rowid: number; readonly changes: number };
}

/**
 * The one SQLite file of a project: journal, actors, steps, requests, tasks. WAL, synced at every
 * commit.
 */
export interface Database {
  readonly file: string;
  prepare(sql: string): Statement;
  /**
   * Runs `work` as one transaction, all or nothing. It answers later while another program holds
   * the database; writes keep their order.
   * @throws StoreError, or rejects with it, and what `work` throws
   */
  write<Result>(work: () => Result): Result | Promise<Result>;
  /** Runs `work` on one state of the database, which no other process changes meanwhile. */
  read<Result>(work: () => Result): Result;
  /** True while another program keeps it from being written. */
  isHeld(): boolean;
  /** False after `close`. */
  isOpen(): boolean;
  /** One sentence on whether it can be written. Never throws. */
  check(): { readonly ok: boolean; readonly detail: string };
  close(): void;
}

const blockingWait: HeldWait = { blockingMs: 5_000, inPausesMs: 0 };
/** Space that a transaction needs in the write-ahead log (bytes). */
const roomBytes = 64 * 1024;

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

/** @throws StoreError */
export const openDatabase = (options: DatabaseOptions): Database => {
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
  const { write, read, isHeld, named } = transactions;
  const probe = db.prepare('select 1 as one');

  return {
    file,
    prepare: (sql) => {
      const prepared = db.prepare(sql);
      const all = (...values: readonly Value[]) => prepared.all(...values) as readonly Row[];
      return {
        all,
        first: (...values) => (prepared.get(...values) as Row | undefined) ?? null,
        run: (...values) => {
          if (!transactions.isWithin()) throw new Error('a write outside of Database.write');
          return named(() => {
            const { lastInsertRowid, changes } = prepared.run(...values);
            return { rowid: Number(lastInsertRowid), changes };
          });
        },
      };
    },
    write,
    read,
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
