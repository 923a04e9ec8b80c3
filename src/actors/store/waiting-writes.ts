import { DatabaseHeldError } from './port.ts';

/** Carries out writes in their order, also while another program holds the database. */
export interface WaitingWrites {
  /**
   * Answers at once when the database is free. Otherwise the write waits, behind those that wait
   * already, and is given up when its time is over.
   * @throws DatabaseHeldError, or rejects with it, and what `write` throws
   */
  run<Result>(write: () => Result): Result | Promise<Result>;
  isWaiting(): boolean;
  stop(error: Error): void;
}

export interface WaitingWritesOptions {
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

export const createWaitingWrites = ({ waitMs, pauseMs }: WaitingWritesOptions): WaitingWrites => {
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
