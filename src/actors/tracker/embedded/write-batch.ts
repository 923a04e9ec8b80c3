import type { Ledger } from '../../ledger/ledger.ts';
import { StoreError } from '../../store/port.ts';
import type { Work } from '../../store/rows.ts';

interface WaitingEdit {
  /** Inside the transaction; what it throws undoes all of it. @returns settles the caller */
  readonly apply: () => Work<() => void>;
  readonly reject: (error: unknown) => void;
}

/** Runs an edit in a transaction with all others that wait at this moment. */
export type BatchedWrite = <Result>(edit: () => Work<Result>) => Promise<Result>;

/** Each edit of a batch gets its own answer. */
export const createWriteBatch = ({
  db,
  exchange,
}: Pick<Ledger, 'db' | 'exchange'>): BatchedWrite => {
  let waiting: WaitingEdit[] = [];
  let isUnderway = false;
  const writeAll = async (): Promise<void> => {
    const batch = waiting;
    waiting = [];
    isUnderway = true;
    try {
      const settles = await db.write(function* () {
        const applied: (() => void)[] = [];
        for (const { apply } of batch) applied.push(yield* apply());
        return applied;
      });
      for (const settle of settles) settle();
      exchange.changed();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    isUnderway = false;
    if (waiting.length > 0) void writeAll();
  };
  return (edit) =>
    new Promise((resolve, reject) => {
      const apply = function* (): Work<() => void> {
        try {
          const result = yield* edit();
          return () => resolve(result);
        } catch (error) {
          // The disk failed: nothing of the batch is written.
          if (error instanceof StoreError) throw error;
          return () => reject(error);
        }
      };
      if (waiting.length === 0 && !isUnderway) queueMicrotask(() => void writeAll());
      waiting.push({ apply, reject });
    });
};
