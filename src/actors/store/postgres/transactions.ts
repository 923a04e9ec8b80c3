import { createSerialQueue } from '../../process/serial-queue.ts';
import { type Answer, StoreAwayError } from '../port.ts';
import type { Ask, Asked, Work } from '../rows.ts';
import type { PostgresConnection } from './connect.ts';
import type { Pool } from './pool.ts';
import { runWork } from './run-work.ts';

export type AnswerOn = (connection: PostgresConnection) => (ask: Ask) => Promise<Asked>;

/** One transaction after another, in the order of the calls. */
export interface PostgresTransactions {
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
  /** The journal ends there. */
  readonly committed: (seq: number) => void;
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
    const [, end, clock] = await connection.queries(
      'begin; select seq from journal_end for update; select clock_ms() as now',
      beginMs,
    );
    locked = { seq: Number(end?.rows[0]?.['seq']), now: Number(clock?.rows[0]?.['now']) };
    heard.clock(locked.now);
    moved = null;
    backend = connection.backend;
  };
  const transaction = async <Result>(
    connection: PostgresConnection,
    work: () => Work<Result>,
  ): Promise<Result> => {
    const sent: Promise<Asked>[] = [];
    const answer = (each: Ask): Answer<Asked> => {
      const answered = answerOn(connection)(each);
      if (each.isSent !== true) return answered;
      answered.catch(() => {});
      sent.push(answered);
      return notAwaited;
    };
    try {
      const result = await runWork(work(), answer);
      // After a statement that failed, it undoes the transaction.
      await Promise.all([...sent, connection.queries('commit')]);
      if (moved !== null) heard.committed(moved);
      return result;
    } catch (error) {
      const failed = (await Promise.allSettled(sent)).find(({ status }) => status === 'rejected');
      await undo(connection);
      // What came after it says only that the transaction is over.
      throw failed?.status === 'rejected' ? failed.reason : error;
    } finally {
      locked = null;
    }
  };
  /** @returns null when it could not begin, and may be tried again */
  const tryWrite = <Result>(work: () => Work<Result>, isLast: boolean) =>
    pool.use(async (connection): Promise<{ readonly result: Result } | null> => {
      try {
        await begin(connection);
      } catch (error) {
        await undo(connection);
        if (isLast || !(error instanceof StoreAwayError)) throw error;
        return null;
      }
      return { result: await transaction(connection, work) };
    });
  const write = <Result>(work: () => Work<Result>): Promise<Result> =>
    inOrder(async () => {
      const done = (await tryWrite(work, false)) ?? (await tryWrite(work, true));
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
