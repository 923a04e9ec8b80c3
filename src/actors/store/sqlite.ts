import { type DatabaseOptions, openDatabase, type SqliteDatabase } from './database.ts';
import type { ActorReads, EntryReads, Store, UsageReads } from './port.ts';
import { createRowStore, type RowStoreOptions } from './row-store.ts';

type ReadName =
  | keyof EntryReads
  | keyof UsageReads
  | keyof ActorReads
  | 'request'
  | 'takeOver'
  | 'check';

/** Its reads answer at once. */
export type SqliteStore = Omit<Store, ReadName> & {
  readonly [Name in ReadName]: (
    ...given: Parameters<Store[Name]>
  ) => Awaited<ReturnType<Store[Name]>>;
};

/** Journal, actor states, steps and requests in the project's database. @throws StoreError */
export const createSqliteStore = (
  options: DatabaseOptions & RowStoreOptions,
  database: SqliteDatabase = openDatabase(options),
): SqliteStore =>
  // Whatever it asks, this database answers at once.
  createRowStore(database, options, {
    lastSeq: () => database.ask(database.lastSeq()),
  }) as SqliteStore;
