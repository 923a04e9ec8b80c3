import type { Store } from './port.ts';
import type { PostgresDatabase } from './postgres/database.ts';
import { createRowStore, type RowStoreOptions } from './row-store.ts';

/** Journal, actor states, steps and requests in the tables of PostgreSQL. */
export const createPostgresStore = (database: PostgresDatabase, options: RowStoreOptions): Store =>
  createRowStore(database, options, {
    lastSeq: database.end.lastSeq,
    reached: database.end.reached,
    onCommitOfOthers: database.onCommitOfOthers,
  });
