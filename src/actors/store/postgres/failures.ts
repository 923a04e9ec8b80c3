import pg from 'pg';
import { messageOf } from '../../../machines/message-of.ts';
import { ChangeRefusedError, DatabaseRefusedError, StoreAwayError, StoreError } from '../port.ts';

const stateCodeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';

const fullCode = '53300';
/** The server cannot serve now, or gave up on one statement: asked again, it may answer. */
const awayCodes = [
  ...['57P01', '57P02', '57P03', '57014', '55P03', '25P02', '25P03', '25006'],
  ...[fullCode, '40001', '40P01'],
];
const isAwayCode = (code: string): boolean => code.startsWith('08') || awayCodes.includes(code);

/** Of data, of constraints, of limits such as the size of an index row: what was written is at fault. */
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
export const mayHelpWithOtherTls = (error: unknown): boolean =>
  isPlainServer(error) || stateCodeOf(error) === '28000';

/** A table was changed since the connection prepared the statement; another one prepares it anew. */
export const isOfOldPlan = (error: unknown): boolean =>
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
