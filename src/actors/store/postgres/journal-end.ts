import { DatabaseGoneError, type StoreError } from '../port.ts';
import type { Row } from '../rows/rows.ts';
import { isOfMissingTable } from './connect.ts';

/** `made` differs when the table was dropped and made anew. */
export const endColumns = 'seq, tableoid::bigint as made';

/** The end of the journal, as this process knows it. Every look at the row there passes here. */
export interface JournalEnd {
  /** The last entry of the journal that this process knows of. */
  lastSeq(): number;
  /** Others tell that it ends there, or later. */
  heard(seq: number): void;
  /** Entries up to this one are there: this process committed or read them. */
  reached(seq: number): void;
  /**
   * The row with `endColumns`, as the primary has it. @throws DatabaseGoneError, from then on at each
   * read, when it is not as this process knew it before it asked: what was saved is not there
   */
  read(ask: () => Promise<Row | undefined>): Promise<number>;
  /** The database is not the one that this process wrote. */
  lost(error: DatabaseGoneError): void;
  onLost(listener: (error: StoreError) => void): void;
}

export const createJournalEnd = (shown: string): JournalEnd => {
  let last = 0;
  /** Without what others tell: everybody who can connect can tell anything. */
  let known = 0;
  let madeAs: number | null = null;
  let gone: DatabaseGoneError | null = null;
  let tellLost = (_: StoreError): void => {};

  const lost = (error: DatabaseGoneError): void => {
    if (gone !== null) return;
    gone = error;
    tellLost(error);
  };
  const heard = (seq: number): void => {
    last = Math.max(last, seq);
  };
  const reached = (seq: number): void => {
    heard(seq);
    known = Math.max(known, seq);
  };
  const problemOf = (row: Row | undefined, before: number): string | null => {
    if (row === undefined) return `the tables in ${shown} were emptied while they were in use`;
    if (madeAs !== null && Number(row['made']) !== madeAs)
      return `the tables in ${shown} were made anew while they were in use`;
    return Number(row['seq']) < before
      ? `the database ${shown} was restored to an earlier state while it was in use`
      : null;
  };
  const rowOrLost = async (ask: () => Promise<Row | undefined>): Promise<Row | undefined> => {
    try {
      return await ask();
    } catch (error) {
      if (isOfMissingTable(error))
        lost(new DatabaseGoneError(`the tables in ${shown} are gone`, { cause: error }));
      throw gone ?? error;
    }
  };
  return {
    lastSeq: () => last,
    heard,
    reached,
    read: async (ask) => {
      const before = known;
      const row = await rowOrLost(ask);
      const problem = problemOf(row, before);
      if (problem !== null) lost(new DatabaseGoneError(problem));
      if (gone !== null) throw gone;
      const seq = Number(row?.['seq']);
      madeAs = Number(row?.['made']);
      reached(seq);
      return seq;
    },
    lost,
    onLost: (listener) => {
      tellLost = listener;
    },
  };
};
