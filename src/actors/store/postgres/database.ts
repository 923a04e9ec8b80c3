import { messageOf } from '../../../machines/message-of.ts';
import { withTimeout } from '../../process/deadline.ts';
import { type Store, StoreAwayError } from '../port.ts';
import { createRowStore, type RowStoreOptions } from '../row-store.ts';
import {
  type Ask,
  type Asked,
  type Database,
  known,
  type Riders,
  type Statement,
  type Work,
  withRiders,
} from '../rows/rows.ts';
import type { PostgresAddress } from './address.ts';
import { connectPostgres, type PostgresConnection } from './connect.ts';
import { hearServers, type ServerHearing } from './hear-servers.ts';
import { migrate, requireTables } from './migrate.ts';
import { createPool, type Pool } from './pool.ts';
import { tableNames } from './schema.ts';
import {
  type AnswerOn,
  beginMs,
  createJournalEnd,
  createPostgresTransactions,
  type JournalEnd,
  runWork,
  undo,
} from './transactions.ts';

/** A command that looks for its server waits 3 s. */
const answerMs = 2_000;
const lockMs = 1_500;

/** Takes the locks of a write: of all tables, and of the end of the journal. */
const probe = `begin;
  set local lock_timeout = ${lockMs};
  lock table ${tableNames.join(', ')} in row exclusive mode;
  select 1 from journal_end for update`;

/**
 * Answers in time, also when others hold locks or the database says nothing. Calls at once share one
 * look. `pool` has the connection that writes.
 */
const createCheck = (pool: Pool, shown: string): Database['check'] => {
  let running: Promise<void> | null = null;
  const look = async (isLast = false): Promise<void> => {
    let isCut = false;
    try {
      await pool.use(async (connection) => {
        try {
          await connection.queries(probe, beginMs);
        } finally {
          isCut = !connection.isOpen();
          await undo(connection);
        }
      });
    } catch (error) {
      // The server may have been started anew since the last write.
      if (!isCut || isLast) throw error;
      await look(true);
    }
  };
  return async () => {
    running ??= look().finally(() => {
      running = null;
    });
    try {
      await withTimeout(running, answerMs, `a look at the tables in ${shown}`);
      return { ok: true, detail: `the journal in ${shown} can be used` };
    } catch (error) {
      return { ok: false, detail: messageOf(error) };
    }
  };
};

/**
 * The time of day of another machine, which goes on between its answers. It is late by the way of
 * an answer. `steady`: ms since any moment, never set.
 */
export const createRemoteClock = (steady: () => number) => {
  let ahead = 0;
  return {
    /** An answer that has just come tells this time (epoch ms). */
    heard: (at: number): void => {
      ahead = at - steady();
    },
    now: (): number => Math.floor(steady() + ahead),
  };
};

/** A text in quotes, a place for a value, or the start of an expression of JSON. */
const tokens = /'(?:[^']|'')*'|\?(\d+)?|\bjson\(/g;

/** A statement as PostgreSQL writes it. `plain_json` is a function of our schema. */
export const postgresText = (sql: string): string => {
  let places = 0;
  return sql.replaceAll(tokens, (token, number: string | undefined) => {
    if (token === 'json(') return 'plain_json(';
    if (!token.startsWith('?')) return token;
    places += 1;
    return `$${number ?? places}`;
  });
};

/** The tables of a project in PostgreSQL. Every answer comes later. */
export interface PostgresDatabase
  extends Database,
    Pick<ServerHearing, 'onCommitOfOthers' | 'onNotice' | 'onCalls'>,
    Pick<JournalEnd, 'onLost'> {
  /** The end of the journal, as this process knows it without asking. */
  readonly end: Pick<JournalEnd, 'lastSeq' | 'reached'>;
  /** Its address, without the password. */
  readonly shown: string;
  /** The time of day of the database (epoch ms), by the last answer that told it. */
  clock(): number;
  /** Tells all servers of the store, this one too. Short, and without a digit at its beginning. */
  tellServers(notice: string): Promise<void>;
  /** Inside a write: tells a server of a call or an answer, when it is committed. */
  tell(kind: 'call' | 'answer', node: string): Work<unknown>;
}

const readConnections = 4;
const statementMs = 10_000;
/** A laptop that sleeps for a moment, or a slow disk, ends no import. */
const longPauseMs = 60_000;
/** Each statement is prepared once on each connection. */
const createAnswers = (): AnswerOn => {
  const names = new Map<string, string>();
  const answerOne = (connection: PostgresConnection, { sql, values }: Ask): Promise<Asked> => {
    const name = names.get(sql) ?? `s${names.size}`;
    names.set(sql, name);
    return connection.query({ text: sql, values, name });
  };
  return (connection) => async (asked) =>
    'together' in asked
      ? {
          rows: [],
          changes: 0,
          together: await Promise.all(asked.together.map((each) => answerOne(connection, each))),
        }
      : answerOne(connection, asked);
};

const askStatement = function* (sql: string, values: Ask['values'] = []): Work<Asked> {
  return yield { sql, values };
};
const sendStatement = function* (sql: string, values: Ask['values']): Work<unknown> {
  return yield { sql, values, isSent: true };
};

const prepare = (sql: string): Statement => {
  const text = postgresText(sql);
  return {
    *all(...values) {
      return (yield* askStatement(text, values)).rows;
    },
    *first(...values) {
      return (yield* askStatement(text, values)).rows[0] ?? null;
    },
    *run(...values) {
      return { changes: (yield* askStatement(text, values)).changes };
    },
    send: (...values) => sendStatement(text, values),
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

const createReads = (pool: Pool, answerOn: AnswerOn) => ({
  asked: <Result>(work: Work<Result>): Promise<Result> =>
    runWork(work, (each) => twice(() => pool.use((connection) => answerOn(connection)(each)))),
  read: <Result>(work: () => Work<Result>): Promise<Result> =>
    twice(() =>
      pool.use(async (connection) => {
        await connection.queries('begin isolation level repeatable read read only');
        try {
          return await runWork(work(), answerOn(connection));
        } finally {
          await undo(connection);
        }
      }),
    ),
});

export interface TablesOptions {
  /** Brings the tables to the version of this program; without it, others are an error. */
  readonly mayMigrate?: boolean;
}

/** @throws StoreError */
export const openPostgresDatabase = async (
  address: PostgresAddress,
  { mayMigrate = true }: TablesOptions = {},
): Promise<PostgresDatabase> => {
  const { schema, shown } = address;
  await (mayMigrate ? migrate(address) : requireTables(address));
  const answerOn = createAnswers();
  const openFor = (readOnly: boolean) => () => connectPostgres(address, { readOnly, statementMs });
  const reads = createPool(openFor(true), readConnections);
  const writes = createPool(openFor(false), 1);
  let isOpen = true;
  const end = createJournalEnd(shown);
  const hearing = hearServers({
    open: openFor(true),
    channel: schema,
    end,
    ownBackend: () => transactions.backend(),
  });
  const clock = createRemoteClock(() => performance.now());
  const transactions = createPostgresTransactions(writes, answerOn, {
    end,
    clock: clock.heard,
  });
  const { asked, read } = createReads(reads, answerOn);
  let riders: Riders | null = null;
  const endNow = function* () {
    const asked = yield* askStatement('select seq, clock_ms() as now from journal_end');
    return { seq: Number(asked.rows[0]?.['seq']), now: Number(asked.rows[0]?.['now']) };
  };
  const database: PostgresDatabase = {
    shown,
    clock: clock.now,
    prepare,
    ask: asked,
    write: withRiders(transactions.write, () => riders),
    carry: (given) => {
      riders = given;
    },
    read,
    has: () => known(true),
    *now() {
      return transactions.locked()?.now ?? (yield* endNow()).now;
    },
    end,
    onLost: end.onLost,
    onCommitOfOthers: hearing.onCommitOfOthers,
    tellServers: async (notice) =>
      void (await asked(askStatement('select pg_notify($1, $2)', [schema, notice]))),
    onNotice: hearing.onNotice,
    onCalls: hearing.onCalls,
    tell: (kind, node) => sendStatement('select pg_notify($1, $2)', [schema, `${kind}:${node}`]),
    *lastSeq() {
      return transactions.locked()?.seq ?? (yield* endNow()).seq;
    },
    mayPause: () =>
      sendStatement(`set local idle_in_transaction_session_timeout = ${longPauseMs}`, []),
    *added(seq) {
      transactions.moveTo(seq);
      yield* sendStatement(
        `with moved as (update journal_end set seq = $1 returning seq)
         select pg_notify('${schema}', seq::text) from moved`,
        [seq],
      );
    },
    shrink: () => false,
    isHeld: () => false,
    isOpen: () => isOpen,
    check: createCheck(writes, shown),
    close: () => {
      isOpen = false;
      hearing.close();
      reads.close();
      writes.close();
    },
  };
  const { seq, now } = await asked(endNow());
  end.heard(seq);
  clock.heard(now);
  return database;
};

/** Journal, actor states, steps and requests in the tables of PostgreSQL. */
export const createPostgresStore = (database: PostgresDatabase, options: RowStoreOptions): Store =>
  createRowStore(database, options, {
    lastSeq: database.end.lastSeq,
    reached: database.end.reached,
    onCommitOfOthers: database.onCommitOfOthers,
  });
