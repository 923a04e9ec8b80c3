import { ServiceError } from '../../../machines/errors.ts';
import { UnsafeFileError } from '../../files/regular-file.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import {
  type Answer,
  DatabaseGoneError,
  DatabaseHeldError,
  DatabaseRefusedError,
  StoreAwayError,
  StoreError,
} from '../../store/port.ts';
import type { Work } from '../../store/rows.ts';
import { createWriteBatch } from './write-batch.ts';

/** Each call first imports what others changed in the file. @throws tracker_unavailable */
export interface LedgerAccess {
  read<Result>(work: () => Work<Result>): Promise<Result>;
  /** As `read`; rejects when bd keeps the tasks. */
  readOurs<Result>(work: () => Work<Result>): Promise<Result>;
  /** As `readOurs`, in a transaction. */
  write<Result>(edit: () => Work<Result>): Promise<Result>;
  /** For work that is more than one read. */
  use<Result>(work: () => Promise<Result>): Promise<Result>;
}

const remedyOf = (error: unknown): string => {
  if (error instanceof StoreAwayError) return 'check the database and the network to it';
  if (error instanceof DatabaseRefusedError) return 'look into the log of the database';
  return 'check that the disk is not full and that the state folder can be written';
};

/** A fault of the store or of the file; others, such as the refusal of a fence, stay as they are. */
const asUnavailable = (error: unknown): never => {
  const isFault = error instanceof StoreError || (error instanceof Error && 'errno' in error);
  if (!isFault && !(error instanceof UnsafeFileError)) throw error;
  const [detail, remedy] =
    error instanceof UnsafeFileError ||
    error instanceof DatabaseHeldError ||
    error instanceof DatabaseGoneError
      ? [error.problem, error.remedy]
      : [error.message, remedyOf(error)];
  throw new ServiceError('tracker_unavailable', { detail, remedy }, { cause: error });
};

export const createLedgerAccess = (ledger: Ledger): LedgerAccess => {
  const batch = createWriteBatch(ledger);
  const use = async <Result>(work: () => Answer<Result>): Promise<Result> => {
    try {
      await ledger.exchange.refresh();
      return await work();
    } catch (error) {
      return asUnavailable(error);
    }
  };
  return {
    use,
    read: (work) => use(() => ledger.db.ask(work())),
    readOurs: (work) =>
      use(() => {
        ledger.requireOurs();
        return ledger.db.ask(work());
      }),
    write: (edit) =>
      use(() => {
        ledger.requireOurs();
        return batch(edit);
      }),
  };
};
