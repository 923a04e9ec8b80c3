import { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { messageOf } from '../../../machines/message-of.ts';
import { ChangeRefusedError, DatabaseRefusedError, StoreAwayError, StoreError } from '../port.ts';
import type { Asked, Row, Value } from '../rows/rows.ts';
import type { DatabaseHost, PostgresAddress } from './address.ts';
import { tlsTries } from './tls.ts';

const stateCodeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';

const fullCode = '53300';
/** The server cannot serve now, or gave up on one statement: asked again, it may answer. */
const awayCodes = [
  '57P01',
  '57P02',
  '57P03',
  '57014',
  '55P03',
  '25P02',
  '25P03',
  '25006',
  fullCode,
  '40001',
  '40P01',
];
const isAwayCode = (code: string): boolean => code.startsWith('08') || awayCodes.includes(code);

/** The data, a constraint or a limit (such as the size of an index row): the write is at fault. */
const isOfContent = (code: string): boolean => /^(?:22|23|54)/.test(code);

/** The server gives no further connection; those that there are go on. */
export const isFull = (error: unknown): boolean =>
  error instanceof Error && isOfServer(error.cause) && stateCodeOf(error.cause) === fullCode;

/** Remedies, by the code of PostgreSQL. */
const remedies: Readonly<Record<string, string>> = {
  '28P01': 'check the user and the password',
  '28000': 'check the user, the password and the pg_hba.conf of the server',
  '3D000': 'create it, or name another one',
  '42501': 'give the user the right to create and use the schema',
  '53100': 'make room on the disk of the server',
  '53200': 'give the server more memory',
  [fullCode]: 'raise its max_connections: each of our servers needs six',
  '42P01': 'its tables are gone: restore them, then start the server again',
  '55P03': 'another session has locked its tables; end it: pg_stat_activity shows which',
  '42P05': 'connect directly, or set pool_mode=session in pgbouncer',
  '26000': 'connect directly, or set pool_mode=session in pgbouncer',
};

/** Tells by the class: `EPIPE` of a broken connection looks like a code of PostgreSQL. */
const isOfServer = (error: unknown): boolean => error instanceof pg.DatabaseError;
const isOfCertificate = (error: unknown): boolean =>
  /CERT|VERIFY|ISSUER|TLS_CERT/.test(stateCodeOf(error)) && !isOfServer(error);
const isPlainServer = (error: unknown): boolean =>
  messageOf(error) === 'The server does not support SSL connections';

/** The server refused this way to connect; with or without TLS it may not. */
const mayHelpWithOtherTls = (error: unknown): boolean =>
  isPlainServer(error) || stateCodeOf(error) === '28000';

/** A table was changed since the connection prepared the statement; another one prepares it anew. */
const isOfOldPlan = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.routine === 'RevalidateCachedQuery';

/** A table that the statement names is not there. */
export const isOfMissingTable = (error: unknown): boolean =>
  error instanceof Error && isOfServer(error.cause) && stateCodeOf(error.cause) === '42P01';

/** An error of the driver in our words. `shown` is the address without its password. */
export const asStoreError = (cause: unknown, shown: string): StoreError => {
  if (cause instanceof StoreError) return cause;
  const code = stateCodeOf(cause);
  const text = messageOf(cause);
  if (isOfCertificate(cause))
    return new StoreError(
      `the certificate of the database ${shown} is not trusted: ${text}; name the certificates in sslrootcert`,
      { cause },
    );
  if (isPlainServer(cause))
    return new StoreError(
      `the database ${shown} has no TLS; give it a certificate, or set sslmode=disable`,
      { cause },
    );
  const help = remedies[code];
  const said = help === undefined ? text : `${text}; ${help}`;
  if (!isOfServer(cause) || isAwayCode(code) || isOfOldPlan(cause))
    return new StoreAwayError(`the database ${shown} does not answer: ${said}`, { cause });
  const Refused = isOfContent(code) ? ChangeRefusedError : DatabaseRefusedError;
  return new Refused(`the database ${shown} refused it: ${said}`, { cause });
};

export interface Query {
  readonly text: string;
  readonly values?: readonly Value[];
  /** Prepared under this name, once for each connection. */
  readonly name?: string;
  /** Longest wait for the answer; then the connection is given up. */
  readonly deadlineMs?: number;
}

/** One connection to the server. Its statements are answered one after another. */
export interface PostgresConnection {
  /** @throws StoreError */
  query(query: Query): Promise<Asked>;
  /** Statements without values; the result of each. @throws StoreError */
  queries(text: string, deadlineMs?: number): Promise<readonly Asked[]>;
  /** The process of the server that has it. */
  readonly backend: number;
  isOpen(): boolean;
  onNotice(listener: (payload: string, backend: number) => void): void;
  /** Called once, when it is over for whatever reason. */
  onEnd(listener: () => void): void;
  close(): void;
}

export interface SessionSettings {
  readonly readOnly: boolean;
  /** The server gives up on a statement after this time (0: never), and on a lock even earlier. */
  readonly statementMs: number;
}

/** The server gives up by itself before this. */
const spareMs = 1_000;
const lockMs = 3_000;
const closeMs = 1_000;
/**
 * A server of ours that was paused in a transaction stops all others meanwhile. They must be able to
 * renew their leases, of which the shortest is 3 s.
 */
const idleInTransactionMs = 1_000;

const numberTypes: ReadonlySet<number> = new Set([
  pg.types.builtins.INT2,
  pg.types.builtins.INT4,
  pg.types.builtins.INT8,
  pg.types.builtins.FLOAT4,
  pg.types.builtins.FLOAT8,
  pg.types.builtins.NUMERIC,
]);
const typeParsers = {
  getTypeParser: (oid: number) =>
    numberTypes.has(oid) ? (text: string) => Number(text) : (text: string) => text,
};

const askedOf = ({ rows, rowCount }: pg.QueryResult<Row>): Asked => ({
  rows,
  changes: rowCount ?? 0,
});

const over = (client: pg.Client, socket: Socket, shown: string, statementMs: number) => {
  let isOpen = true;
  const enders = new Set<() => void>();
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    for (const ended of enders) ended();
  };
  client.on('error', end);
  client.on('end', end);
  const giveUp = (): void => {
    end();
    socket.destroy();
  };
  const inTime = async <Result>(
    answer: Promise<Result>,
    deadlineMs = statementMs === 0 ? null : statementMs + spareMs,
  ): Promise<Result> => {
    const timer = deadlineMs === null ? undefined : setTimeout(giveUp, deadlineMs);
    try {
      return await answer;
    } catch (error) {
      if (isOfOldPlan(error)) giveUp();
      throw asStoreError(error, shown);
    } finally {
      clearTimeout(timer);
    }
  };
  let isHeldBack = false;
  /** What is asked in the same turn leaves in one piece. */
  const holdBack = (): void => {
    if (isHeldBack) return;
    isHeldBack = true;
    const { stream } = client.connection;
    stream.cork();
    process.nextTick(() => {
      isHeldBack = false;
      stream.uncork();
    });
  };
  const connection: PostgresConnection = {
    query: async ({ text, values = [], name, deadlineMs }) => {
      holdBack();
      return askedOf(
        await inTime(client.query<Row>({ text, values: [...values], name }), deadlineMs),
      );
    },
    queries: async (text, deadlineMs) => {
      holdBack();
      const results: unknown = await inTime(client.query<Row>(text), deadlineMs);
      return (Array.isArray(results) ? results : [results]).map(askedOf);
    },
    backend: Number(Reflect.get(client, 'processID') ?? 0),
    isOpen: () => isOpen,
    onNotice: (listener) =>
      void client.on('notification', ({ payload, processId }) =>
        listener(payload ?? '', processId),
      ),
    onEnd: (listener) => void enders.add(listener),
    close: () => {
      end();
      client.end().catch(() => {});
      // Where nobody answers, it would not end.
      setTimeout(() => socket.destroy(), closeMs).unref();
    },
  };
  return connection;
};

const connectOnce = async (
  address: PostgresAddress,
  { host, port }: DatabaseHost,
  ssl: ConnectionOptions | false,
  { statementMs }: SessionSettings,
): Promise<PostgresConnection> => {
  const { user, database, shown, connectMs } = address;
  const socket = new Socket();
  const client = new pg.Client({
    host,
    port,
    user,
    database,
    types: typeParsers,
    ssl,
    // Statements whose answers nobody waits for are sent together.
    pipeline: true,
    stream: () => socket,
    application_name: 'agent-task-server',
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    password: () => {
      const password = address.password();
      if (password === null)
        throw new StoreError(
          `the database ${shown} asks for a password, and none was given: ${address.passwordAdvice}`,
        );
      return password;
    },
  });
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return over(client, socket, shown, statementMs);
};

/**
 * Settings that our statements need; the role or the database may have other defaults.
 *
 * No plan reads a whole table where an index helps: a statement is planned once for each connection,
 * perhaps while the tables are empty, and kept while they grow.
 */
const reliedOn = `set_config('default_transaction_isolation', 'read committed', false),
  set_config('standard_conforming_strings', 'on', false),
  set_config('extra_float_digits', '1', false),
  set_config('jit', 'off', false),
  set_config('enable_seqscan', 'off', false),
  case when current_setting('idle_session_timeout', true) is not null
    then set_config('idle_session_timeout', '0', false) end`;

/** Settles a connection before it is used. @throws StoreError */
const settle = async (
  connection: PostgresConnection,
  address: PostgresAddress,
  { readOnly, statementMs }: SessionSettings,
): Promise<void> => {
  const { rows } = await connection.query({
    text: `select current_setting('agent.connection', true) as mark,
      set_config('agent.connection', 'settled', false), set_config('search_path', $1, false), set_config('statement_timeout', $2, false),
      set_config('lock_timeout', $3, false), set_config('idle_in_transaction_session_timeout', $4, false),
      set_config('default_transaction_read_only', $5, false), ${reliedOn},
      case when current_setting('synchronous_commit') = 'off'
        then set_config('synchronous_commit', 'on', false) end,
      case when pg_is_in_recovery() then 1 else 0 end as standby`,
    values: [
      address.schema,
      String(statementMs),
      String(statementMs === 0 ? 0 : lockMs),
      String(idleInTransactionMs),
      readOnly ? 'on' : 'off',
    ],
  });
  // Where settings of another connection count, its schema could be that of another project.
  if (rows[0]?.['mark'] === 'settled')
    throw new StoreError(
      `the database ${address.shown} is behind a pooler that swaps connections; connect directly, or set pool_mode=session in pgbouncer`,
    );
  if (address.needsPrimary && rows[0]?.['standby'] === 1)
    throw new StoreAwayError(`the database ${address.shown} is a standby, which takes no writes`);
};

const connectTo = async (
  address: PostgresAddress,
  host: DatabaseHost,
  settings: SessionSettings,
): Promise<PostgresConnection> => {
  const tries = tlsTries(address.tls, host.host.startsWith('/'));
  for (const [at, ssl] of tries.entries()) {
    try {
      const connection = await connectOnce(address, host, ssl, settings);
      try {
        await settle(connection, address, settings);
        return connection;
      } catch (error) {
        connection.close();
        throw error;
      }
    } catch (error) {
      if (at + 1 === tries.length || !mayHelpWithOtherTls(error)) throw error;
    }
  }
  throw new Error('there is always a way to try');
};

/** Connects to the first host that takes it. @throws StoreError */
export const connectPostgres = async (
  address: PostgresAddress,
  settings: SessionSettings,
): Promise<PostgresConnection> => {
  let failure: unknown = new Error('it has no host');
  for (const host of address.hosts) {
    try {
      return await connectTo(address, host, settings);
    } catch (error) {
      failure = error;
    }
  }
  throw asStoreError(failure, address.shown);
};
