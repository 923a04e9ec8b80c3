import { createSerialQueue } from '../../process/serial-queue.ts';
import { type Answer, DatabaseGoneError, StoreAwayError, type StoreError } from '../port.ts';
import type { Ask, Asked, Asks, Row, Work } from '../rows/rows.ts';
import { isOfMissingTable, type PostgresConnection } from './connect.ts';
import type { Pool } from './pool.ts';

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

/** Gives the statements of a work one after another to `answer`. */
export const runWork = async <Result>(
  work: Work<Result>,
  answer: (asked: Ask | Asks) => Answer<Asked>,
): Promise<Result> => {
  const steps = work[Symbol.iterator]();
  let step = steps.next();
  while (step.done !== true) {
    let asked: Asked;
    try {
      const answered = answer(step.value);
      asked = answered instanceof Promise ? await answered : answered;
    } catch (error) {
      // The work may have something to say about it.
      if (steps.throw === undefined) throw error;
      step = steps.throw(error);
      continue;
    }
    step = steps.next(asked);
  }
  return step.value;
};

export type AnswerOn = (connection: PostgresConnection) => (asked: Ask | Asks) => Promise<Asked>;

/** One transaction after another, in the order of the calls. */
interface PostgresTransactions {
  /** A second time when the first could not begin. @throws StoreError, and what `work` throws */
  write<Result>(work: () => Work<Result>): Promise<Result>;
  /** The end of the journal while a write holds its lock; nobody else moves it then. */
  locked(): { readonly seq: number; readonly now: number } | null;
  /** Inside a write: the journal ends at `seq` when it is committed. */
  moveTo(seq: number): void;
  /** The process of the server that had the last write. */
  backend(): number;
}

interface TransactionListener {
  readonly end: Pick<JournalEnd, 'read' | 'reached' | 'lost'>;
  /** The time of day of the database, as its answer says. */
  readonly clock: (at: number) => void;
}

/** A connection that was cut is noticed after this time, before anything is written. */
export const beginMs = 3_500;

const notAwaited: Asked = { rows: [], changes: 0 };

export const undo = async (connection: PostgresConnection): Promise<void> => {
  if (!connection.isOpen()) return;
  await connection.queries('rollback', beginMs).catch(() => connection.close());
};

/** `pool` has one connection. */
export const createPostgresTransactions = (
  pool: Pool,
  answerOn: AnswerOn,
  heard: TransactionListener,
): PostgresTransactions => {
  const inOrder = createSerialQueue();
  let locked: { readonly seq: number; readonly now: number } | null = null;
  let moved: number | null = null;
  let backend = 0;

  const begin = async (connection: PostgresConnection): Promise<void> => {
    let now = 0;
    const seq = await heard.end.read(async () => {
      const [, end, clock] = await connection.queries(
        `begin; select ${endColumns} from journal_end for update; select clock_ms() as now`,
        beginMs,
      );
      now = Number(clock?.rows[0]?.['now']);
      return end?.rows[0];
    });
    locked = { seq, now };
    heard.clock(locked.now);
    backend = connection.backend;
  };
  /**
   * What a work reads first travels with the begin: the lock of the journal is held for the answer to
   * it and for the writes, which travel with the commit.
   */
  const answering = (connection: PostgresConnection, begun: Promise<void>) => {
    const sent: Promise<Asked>[] = [];
    const answer = (each: Ask | Asks): Answer<Asked> => {
      const isRead = 'together' in each;
      if (!isRead && locked === null) return begun.then(() => answer(each));
      const answered = answerOn(connection)(each);
      answered.catch(() => {});
      if (isRead) return begun.then(() => answered);
      if (each.isSent !== true) return answered;
      sent.push(answered);
      return notAwaited;
    };
    return { answer, sent };
  };
  /** @returns null when it could not begin, and may be tried again */
  const tryOn = async <Result>(
    connection: PostgresConnection,
    work: () => Work<Result>,
    isLast: boolean,
  ): Promise<{ readonly result: Result } | null> => {
    moved = null;
    let hasBegun = false;
    const begun = begin(connection).then(() => {
      hasBegun = true;
    });
    const { answer, sent } = answering(connection, begun);
    try {
      const result = await runWork(work(), answer);
      await begun;
      // After a statement that failed, it undoes the transaction.
      await Promise.all([...sent, connection.queries('commit')]);
      if (moved !== null) heard.end.reached(moved);
      return { result };
    } catch (error) {
      const failed = (await Promise.allSettled([begun, ...sent])).find(
        ({ status }) => status === 'rejected',
      );
      await undo(connection);
      // What came after it says only that the transaction is over.
      const cause: unknown = failed?.status === 'rejected' ? failed.reason : error;
      if (cause instanceof DatabaseGoneError) heard.end.lost(cause);
      if (hasBegun || isLast || !(cause instanceof StoreAwayError)) throw cause;
      return null;
    } finally {
      locked = null;
    }
  };
  const write = <Result>(work: () => Work<Result>): Promise<Result> =>
    inOrder(async () => {
      const tryOnce = (isLast: boolean) =>
        pool.use((connection) => tryOn(connection, work, isLast));
      const done = (await tryOnce(false)) ?? (await tryOnce(true));
      if (done === null) throw new Error('the last try tells why');
      return done.result;
    });

  return {
    write,
    locked: () => locked,
    moveTo: (seq) => {
      moved = seq;
    },
    backend: () => backend,
  };
};
