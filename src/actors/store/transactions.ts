import type Sqlite from 'libsql';
import { messageOf } from '../../machines/message-of.ts';
import { DatabaseHeldError, StoreError } from './port.ts';
import { createWaitingWrites } from './waiting-writes.ts';

export interface HeldWait {
  /** Longest wait that blocks the process (ms). */
  readonly blockingMs: number;
  /** Longest wait after that, in pauses (ms). */
  readonly inPausesMs: number;
}

const busyPauseMs = 100;

export const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');

interface TransactionOptions {
  readonly heldWait: HeldWait;
  /** Throws before a write that could not be found again. */
  readonly requireFile: () => void;
  readonly onFailure: (cause: unknown) => void;
  readonly onSuccess: () => void;
}

export interface Transactions {
  readonly write: <Result>(work: () => Result) => Result | Promise<Result>;
  readonly read: <Result>(work: () => Result) => Result;
  readonly isHeld: () => boolean;
  /** Whether a transaction is open. @throws StoreError after the end */
  readonly isWithin: () => boolean;
  /** Gives the cause of a failed write its words. */
  readonly named: <Result>(step: () => Result) => Result;
  readonly close: () => void;
}

export const createTransactions = (
  db: Sqlite.Database,
  file: string,
  { heldWait: { blockingMs, inPausesMs }, requireFile, onFailure, onSuccess }: TransactionOptions,
): Transactions => {
  const waiting = createWaitingWrites({ waitMs: inPausesMs, pauseMs: busyPauseMs });
  let wasHeld = false;
  /** libsql ends the whole process when a closed database is asked. */
  const isWithin = (): boolean => {
    if (!db.open) throw new StoreError('the database is closed');
    return db.inTransaction;
  };
  const named = <Result>(step: () => Result): Result => {
    try {
      return step();
    } catch (cause) {
      wasHeld = isBusy(cause);
      if (wasHeld) throw new DatabaseHeldError(file, blockingMs, { cause });
      onFailure(cause);
      throw new StoreError(`the journal ${file} cannot be written: ${messageOf(cause)}`, { cause });
    }
  };
  /** libsql's `transaction` rolls back a second time, and so hides the cause (a full disk). */
  const within = <Result>(begin: string, work: () => Result): Result => {
    named(() => db.exec(begin));
    try {
      const result = work();
      named(() => db.exec('commit'));
      return result;
    } catch (error) {
      if (db.open && db.inTransaction) db.exec('rollback');
      throw error;
    }
  };
  const writeNow = <Result>(work: () => Result): Result => {
    const result = within('begin immediate', work);
    wasHeld = false;
    return result;
  };
  return {
    named,
    write: (work) => {
      if (isWithin()) throw new Error('a transaction inside of another one');
      return waiting.run(() => {
        requireFile();
        const result = writeNow(work);
        onSuccess();
        return result;
      });
    },
    read: (work) => (isWithin() ? work() : within('begin', work)),
    isWithin,
    isHeld: () => {
      if (!wasHeld || waiting.isWaiting()) return wasHeld;
      try {
        writeNow(() => {});
      } catch {}
      return wasHeld;
    },
    close: () => waiting.stop(new StoreError('the database is closed')),
  };
};
