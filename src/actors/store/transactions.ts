import type Sqlite from 'libsql';
import { messageOf } from '../../machines/message-of.ts';
import { DatabaseHeldError, StoreError } from './port.ts';

/** Carries out writes in their order, also while another program holds the database. */
interface WaitingWrites {
  /**
   * Answers at once when the database is free. Otherwise the write waits, behind those that wait
   * already, and is given up when its time is over.
   * @throws DatabaseHeldError, or rejects with it, and what `write` throws
   */
  run<Result>(write: () => Result): Result | Promise<Result>;
  isWaiting(): boolean;
  stop(error: Error): void;
}

interface WaitingWritesOptions {
  /** Longest time that a write waits (ms); 0: it fails at once. */
  readonly waitMs: number;
  /** Pause between two tries (ms). */
  readonly pauseMs: number;
}

interface WaitingWrite {
  /** @returns false when the write goes on waiting */
  readonly tryOnce: () => boolean;
  readonly reject: (error: unknown) => void;
}

const createWaitingWrites = ({ waitMs, pauseMs }: WaitingWritesOptions): WaitingWrites => {
  let waiting: WaitingWrite[] = [];
  let timer: NodeJS.Timeout | null = null;

  const tryAll = (): void => {
    timer = null;
    while (waiting[0]?.tryOnce() === true) waiting.shift();
    if (waiting.length > 0) timer = setTimeout(tryAll, pauseMs);
  };
  const wait = <Result>(write: () => Result): Promise<Result> =>
    new Promise((resolve, reject) => {
      const since = performance.now();
      const tryOnce = (): boolean => {
        try {
          resolve(write());
          return true;
        } catch (error) {
          const waitedMs = performance.now() - since;
          const isHeld = error instanceof DatabaseHeldError;
          if (isHeld && waitedMs < waitMs) return false;
          reject(isHeld ? new DatabaseHeldError(error.file, waitedMs, { cause: error }) : error);
          return true;
        }
      };
      waiting.push({ tryOnce, reject });
      timer ??= setTimeout(tryAll, pauseMs);
    });

  return {
    run: (write) => {
      if (waiting.length > 0) return wait(write);
      try {
        return write();
      } catch (error) {
        if (!(error instanceof DatabaseHeldError) || waitMs === 0) throw error;
        return wait(write);
      }
    },
    isWaiting: () => waiting.length > 0,
    stop: (error) => {
      if (timer !== null) clearTimeout(timer);
      for (const { reject } of waiting) reject(error);
      waiting = [];
    },
  };
};

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
