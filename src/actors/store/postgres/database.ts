import { messageOf } from '../../../machines/message-of.ts';
import { StoreAwayError } from '../port.ts';
import { type Ask, type Asked, type Database, known, type Statement, type Work } from '../rows.ts';
import type { PostgresAddress } from './address.ts';
import { carryOut } from './carry-out.ts';
import { type Connection, connect } from './connect.ts';
import { migrate } from './migrate.ts';
import { listenFor } from './notices.ts';
import { createPool, type Pool } from './pool.ts';
import { postgresText } from './statement-text.ts';
import { type AnswerOn, beginMs, createTransactions, undo } from './transactions.ts';

/** The tables of a project in PostgreSQL. Every answer comes later. */
export interface PostgresDatabase extends Database {
  /** Its address, without the password. */
  readonly shown: string;
  /** The last entry of the journal that this process knows of. */
  reachedSeq(): number;
  /** Calls the listener after a commit of another process, or one of which no answer came. */
  onCommitOfOthers(listener: (lastSeq: number) => void): void;
  /** Tells all servers of the store, this one too. Short, and without a digit at its beginning. */
  tellServers(notice: string): Promise<void>;
  onNotice(listener: (notice: string) => void): void;
  /** Null: nobody listens any more. */
  onCalls(listener: CallListener | null): void;
  /** Inside a write: tells a server of a call or an answer, when it is committed. */
  tell(kind: 'call' | 'answer', node: string): Work<unknown>;
}

/** Hears of rows in `server_calls`. A notice is a hint: either may be called when nothing is there. */
export interface CallListener {
  /** This start of the server. */
  readonly node: string;
  readonly called: () => void;
  readonly answered: () => void;
}

const lookText = `select seq, exists (
    select from server_calls where node = $1 and taken is null and until > clock_ms()
  )::integer as called from journal_end`;
const readers = 4;
const statementMs = 10_000;
/** The answer of our own commit comes at the same time as its notice. */
const ownNoticeMs = 50;

/** Each statement is prepared once on each connection. */
const createAnswers = (): AnswerOn => {
  const names = new Map<string, string>();
  return (connection) =>
    ({ sql, values }) => {
      const name = names.get(sql) ?? `s${names.size}`;
      names.set(sql, name);
      return connection.query({ text: sql, values, name });
    };
};

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

const createReads = (pool: Pool, answerOn: AnswerOn) => ({
  asked: <Result>(work: Work<Result>): Promise<Result> =>
    carryOut(work, (each) => twice(() => pool.use((connection) => answerOn(connection)(each)))),
  read: <Result>(work: () => Work<Result>): Promise<Result> =>
    twice(() =>
      pool.use(async (connection) => {
        await connection.queries('begin isolation level repeatable read read only');
        try {
          return await carryOut(work(), answerOn(connection));
        } finally {
          await undo(connection);
        }
      }),
    ),
});

const createCheck =
  (pool: Pool, shown: string): Database['check'] =>
  async () => {
    try {
      await twice(() => pool.use((connection) => connection.queries('select 1', beginMs)));
      return { ok: true, detail: `the journal in ${shown} can be used` };
    } catch (error) {
      return { ok: false, detail: messageOf(error) };
    }
  };

/** Connects, and brings the tables to the version of this server. @throws StoreError */
export const openPostgresDatabase = async (address: PostgresAddress): Promise<PostgresDatabase> => {
  const { schema, shown } = address;
  await migrate(address);
  const answerOn = createAnswers();
  const openFor = (readOnly: boolean) => () => connect(address, { readOnly, statementMs });
  const reads = createPool(openFor(true), readers);
  const writes = createPool(openFor(false), 1);
  let isOpen = true;
  let lastSeq = 0;
  let tellOthers = (_: number): void => {};
  const noticeListeners: ((notice: string) => void)[] = [];
  let calls: CallListener | null = null;
  const reached = (seq: number): void => {
    if (seq > lastSeq) lastSeq = seq;
  };
  const transactions = createTransactions(writes, answerOn, reached);
  const { asked, read } = createReads(reads, answerOn);
  const seqNow = function* (): Work<number> {
    return Number((yield* ask('select seq from journal_end')).rows[0]?.['seq']);
  };
  const look = async (connection: Connection): Promise<void> => {
    const values = [calls?.node ?? ''];
    const query = { name: 'look', text: lookText, values, deadlineMs: beginMs };
    const [row] = (await connection.query(query)).rows;
    const seq = Number(row?.['seq']);
    reached(seq);
    tellOthers(seq);
    if (row?.['called'] === 1) calls?.called();
    calls?.answered();
  };
  const heardOfCall = (payload: string): void => {
    if (payload === `call:${calls?.node}`) calls?.called();
    if (payload === `answer:${calls?.node}`) calls?.answered();
  };

  const database: PostgresDatabase = {
    shown,
    prepare,
    ask: asked,
    write: transactions.write,
    read,
    has: () => known(true),
    *now() {
      return (
        transactions.locked()?.now ??
        Number((yield* ask('select clock_ms() as now')).rows[0]?.['now'])
      );
    },
    reachedSeq: () => lastSeq,
    onCommitOfOthers: (listener) => {
      tellOthers = listener;
    },
    tellServers: async (notice) =>
      void (await asked(ask('select pg_notify($1, $2)', [schema, notice]))),
    onNotice: (listener) => void noticeListeners.push(listener),
    onCalls: (listener) => {
      calls = listener;
    },
    tell: (kind, node) => send('select pg_notify($1, $2)', [schema, `${kind}:${node}`]),
    *lastSeq() {
      return transactions.locked()?.seq ?? (yield* seqNow());
    },
    *added(seq) {
      transactions.moveTo(seq);
      yield* send(
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
      notices.close();
      reads.close();
      writes.close();
    },
  };
  const notices = listenFor({
    open: openFor(true),
    channel: schema,
    heard: (payload, backend) => {
      if (/^(?:call|answer):/.test(payload)) return heardOfCall(payload);
      if (!/^\d/.test(payload)) {
        for (const listener of noticeListeners) listener(payload);
        return;
      }
      const tell = (): void => {
        reached(Number(payload));
        tellOthers(Number(payload));
      };
      if (backend === transactions.backend()) setTimeout(tell, ownNoticeMs).unref();
      else tell();
    },
    look,
  });
  reached(await asked(seqNow()));
  return database;
};
