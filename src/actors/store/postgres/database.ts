import { messageOf } from '../../../machines/message-of.ts';
import { createSerialQueue } from '../../process/serial-queue.ts';
import { type Answer, StoreAwayError } from '../port.ts';
import { type Ask, type Asked, type Database, known, type Statement, type Work } from '../rows.ts';
import type { PostgresAddress } from './address.ts';
import { carryOut } from './carry-out.ts';
import { type Connection, connect } from './connect.ts';
import { migrate } from './migrate.ts';
import { listenFor } from './notices.ts';
import { createPool } from './pool.ts';
import { postgresText } from './statement-text.ts';

/** The tables of a project in PostgreSQL. Every answer comes later. */
export interface PostgresDatabase extends Database {
  /** Its address, without the password. */
  readonly shown: string;
  /** The last entry of the journal that this process knows of. */
  reachedSeq(): number;
  /** Calls the listener after a commit of another process, or one of which no answer came. */
  onCommitOfOthers(listener: (lastSeq: number) => void): void;
}

const readers = 4;
const statementMs = 10_000;
/** A connection that was cut is noticed after this time, before anything is written. */
const beginMs = 3_500;
/** The answer of our own commit comes at the same time as its notice. */
const ownNoticeMs = 50;

/** Names for prepared statements. */
const createNames = (): ((sql: string) => string) => {
  const names = new Map<string, string>();
  return (sql) => {
    const name = names.get(sql) ?? `s${names.size}`;
    names.set(sql, name);
    return name;
  };
};

const noAnswer: Asked = { rows: [], changes: 0 };

const ask = function* (sql: string, values: Ask['values'] = []): Work<Asked> {
  return yield { sql, values };
};
const send = function* (sql: string, values: Ask['values']): Work<unknown> {
  return yield { sql, values, isSent: true };
};

const prepare = (sql: string): Statement => {
  const text = postgresText(sql);
  return {
    *all(...values) {
      return (yield* ask(text, values)).rows;
    },
    *first(...values) {
      return (yield* ask(text, values)).rows[0] ?? null;
    },
    *run(...values) {
      return { changes: (yield* ask(text, values)).changes };
    },
    send: (...values) => send(text, values),
  };
};

/** Tries once more what changed nothing: the server may have been started anew meanwhile. */
const twice = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof StoreAwayError)) throw error;
    return work();
  }
};

/** Connects, and brings the tables to the version of this server. @throws StoreError */
export const openPostgresDatabase = async (address: PostgresAddress): Promise<PostgresDatabase> => {
  const { schema, shown } = address;
  await migrate(address);
  const nameOf = createNames();
  const answerOn =
    (connection: Connection) =>
    ({ sql, values }: Ask): Promise<Asked> =>
      connection.query({ text: sql, values, name: nameOf(sql) });
  const openFor = (readOnly: boolean) => () => connect(address, { readOnly, statementMs });
  const reads = createPool(openFor(true), readers);
  const writes = createPool(openFor(false), 1);
  const inOrder = createSerialQueue();
  let isOpen = true;
  /** The end of the journal while a write holds its lock; nobody else moves it then. */
  let locked: { readonly seq: number; readonly now: number } | null = null;
  let moved: number | null = null;
  let lastSeq = 0;
  let ownBackend = 0;
  let tellOthers = (_: number): void => {};
  const reached = (seq: number): void => {
    if (seq > lastSeq) lastSeq = seq;
  };

  const begin = async (connection: Connection): Promise<void> => {
    const [, end, clock] = await connection.queries(
      'begin; select seq from journal_end for update; select clock_ms() as now',
      beginMs,
    );
    locked = { seq: Number(end?.rows[0]?.['seq']), now: Number(clock?.rows[0]?.['now']) };
    moved = null;
    ownBackend = connection.backend;
  };
  const undo = async (connection: Connection): Promise<void> => {
    if (!connection.isOpen()) return;
    await connection.queries('rollback', beginMs).catch(() => connection.close());
  };
  const transaction = async <Result>(
    connection: Connection,
    work: () => Work<Result>,
  ): Promise<Result> => {
    const sent: Promise<Asked>[] = [];
    const answer = (each: Ask): Answer<Asked> => {
      const answered = answerOn(connection)(each);
      if (each.isSent !== true) return answered;
      answered.catch(() => {});
      sent.push(answered);
      return noAnswer;
    };
    try {
      const result = await carryOut(work(), answer);
      // After a statement that failed, it undoes the transaction.
      await Promise.all([...sent, connection.queries('commit')]);
      if (moved !== null) reached(moved);
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
    writes.use(async (connection): Promise<{ readonly result: Result } | null> => {
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

  const asked = <Result>(work: Work<Result>): Promise<Result> =>
    carryOut(work, (each) => twice(() => reads.use((connection) => answerOn(connection)(each))));
  const read = <Result>(work: () => Work<Result>): Promise<Result> =>
    twice(() =>
      reads.use(async (connection) => {
        await connection.queries('begin isolation level repeatable read read only');
        try {
          return await carryOut(work(), answerOn(connection));
        } finally {
          await undo(connection);
        }
      }),
    );
  const seqNow = function* (): Work<number> {
    return Number((yield* ask('select seq from journal_end')).rows[0]?.['seq']);
  };
  const look = async (connection: Connection): Promise<void> => {
    const [end] = await connection.queries('select seq from journal_end', beginMs);
    const seq = Number(end?.rows[0]?.['seq']);
    reached(seq);
    tellOthers(seq);
  };

  const database: PostgresDatabase = {
    shown,
    prepare,
    ask: asked,
    write,
    read,
    has: () => known(true),
    *now() {
      return locked?.now ?? Number((yield* ask('select clock_ms() as now')).rows[0]?.['now']);
    },
    reachedSeq: () => lastSeq,
    onCommitOfOthers: (listener) => {
      tellOthers = listener;
    },
    *lastSeq() {
      return locked?.seq ?? (yield* seqNow());
    },
    *added(seq) {
      moved = seq;
      yield* send(
        `with moved as (update journal_end set seq = $1 returning seq)
         select pg_notify('${schema}', seq::text) from moved`,
        [seq],
      );
    },
    shrink: () => false,
    isHeld: () => false,
    isOpen: () => isOpen,
    check: async () => {
      try {
        await twice(() => writes.use((connection) => connection.queries('select 1', beginMs)));
        return { ok: true, detail: `the journal in ${shown} can be used` };
      } catch (error) {
        return { ok: false, detail: messageOf(error) };
      }
    },
    close: () => {
      isOpen = false;
      notices.close();
      reads.close();
      writes.close();
    },
  };
  const notices = listenFor({
    open: openFor(true),
    channel: schema,
    heard: (payload, backend) => {
      const tell = (): void => {
        reached(Number(payload));
        tellOthers(Number(payload));
      };
      if (backend === ownBackend) setTimeout(tell, ownNoticeMs).unref();
      else tell();
    },
    look,
  });
  reached(await asked(seqNow()));
  return database;
};
