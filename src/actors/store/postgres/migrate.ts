import { StoreError } from '../port.ts';
import type { PostgresAddress } from './address.ts';
import { connectPostgres, type PostgresConnection } from './connect.ts';
import { type Migration, migrations } from './schema.ts';

export interface Migrated {
  /** The version that the database had; 0: it had no tables of ours. */
  readonly from: number;
  readonly to: number;
  /** Carried out, or in a dry run still to be. */
  readonly steps: readonly Migration[];
}

interface MigrateOptions {
  /** Changes nothing. */
  readonly isDry?: boolean;
  readonly known?: readonly Migration[];
}

/** Reads the catalog itself: `to_regclass` may answer from a cache of before the lock. */
const schemaVersion = async (connection: PostgresConnection, schema: string): Promise<number> => {
  const { rows } = await connection.query({
    text: `select 1 as one from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where nspname = $1 and relname = 'schema_versions'`,
    values: [schema],
  });
  if (rows.length === 0) return 0;
  const [found] = await connection.queries(
    `select coalesce(max(version), 0) as version from ${schema}.schema_versions`,
  );
  return Number(found?.rows[0]?.['version']);
};

/** Other names than ours need no quotes: `schema` was checked. */
const takeSteps = async (
  connection: PostgresConnection,
  { schema, shown }: PostgresAddress,
  stepsAfter: (version: number) => readonly Migration[],
): Promise<Omit<Migrated, 'to'>> => {
  await connection.queries('begin');
  // One server does it, the others wait here and find it done.
  await connection.query({
    text: "select pg_advisory_xact_lock(hashtext('agent-task-server'), hashtext($1))",
    values: [schema],
  });
  const from = await schemaVersion(connection, schema);
  const steps = stepsAfter(from);
  if (from === 0) {
    await createStoreSchema(connection, schema, shown);
    await connection.queries(`create table if not exists ${schema}.schema_versions (
      version integer primary key, name text not null, at timestamptz not null default now())`);
  }
  for (const { version, name, sql } of steps) {
    await connection.queries(sql);
    await connection.query({
      text: 'insert into schema_versions (version, name) values ($1, $2)',
      values: [version, name],
    });
  }
  await connection.queries('commit');
  return { from, steps };
};

/** A user without the right to create a schema may use one that an administrator made. */
const createStoreSchema = async (
  connection: PostgresConnection,
  schema: string,
  shown: string,
): Promise<void> => {
  const { rows } = await connection.query({
    text: `select has_database_privilege(current_database(), 'create')::integer as may,
      (select count(*) from pg_namespace where nspname = $1) as found`,
    values: [schema],
  });
  if (rows[0]?.['found'] !== 0) return;
  if (rows[0]?.['may'] !== 1)
    throw new StoreError(
      `the database ${shown} has no schema ${schema}, and the user may not create it; let its owner run: create schema ${schema} authorization <user>`,
    );
  await connection.queries(`create schema ${schema}`);
};

/**
 * Brings the tables to the version of this server, once, whoever asks at the same time. There is no
 * way back. @throws StoreError when the tables are of a later version than this server
 */
export const migrate = async (
  address: PostgresAddress,
  { isDry = false, known = migrations }: MigrateOptions = {},
): Promise<Migrated> => {
  const to = known.at(-1)?.version ?? 0;
  const stepsAfter = (version: number): readonly Migration[] => {
    if (version > to)
      throw new StoreError(
        `the tables in ${address.shown} are of version ${version}, and this server knows version ${to}; install a server that is as new as the one that wrote them`,
      );
    return known.filter((step) => step.version > version);
  };
  // Rows of many years take their time.
  const connection = await connectPostgres(address, { readOnly: isDry, statementMs: 0 });
  try {
    const from = await schemaVersion(connection, address.schema);
    const steps = stepsAfter(from);
    if (isDry || steps.length === 0) return { from, to, steps };
    return { ...(await takeSteps(connection, address, stepsAfter)), to };
  } finally {
    connection.close();
  }
};

export const hasTables = async (address: PostgresAddress): Promise<boolean> =>
  (await migrate(address, { isDry: true })).from > 0;

/** Looks whether the tables are those of this version. @throws StoreError, which says what to do */
export const requireTables = async (address: PostgresAddress): Promise<void> => {
  const { schema, shown } = address;
  const { from, to, steps } = await migrate(address, { isDry: true });
  if (from === 0)
    throw new StoreError(
      `the database ${shown} has no tables in the schema ${schema}: check the schema in the address (store.url), or let a server make them: agent server start`,
    );
  if (steps.length > 0)
    throw new StoreError(
      `the tables in ${shown} are of version ${from}, and this program needs version ${to}: let its server bring them up to date (agent server start), or run: agent store migrate`,
    );
};
