import type { Store } from '../store/port.ts';
import type { PostgresAddress } from '../store/postgres/address.ts';
import {
  createPostgresStore,
  openPostgresDatabase,
  type PostgresDatabase,
  type TablesOptions,
} from '../store/postgres/database.ts';
import { type LedgerOptions, type OpenedLedger, openLedgerIn } from './ledger.ts';

/** As `openLedgerIn`, in PostgreSQL. Rejects with a StoreError. */
export const openPostgresLedger = async (
  address: PostgresAddress,
  { mayMigrate = true, ...options }: Omit<LedgerOptions<PostgresDatabase>, 'db'> & TablesOptions,
): Promise<OpenedLedger<PostgresDatabase, Store>> => {
  const db = await openPostgresDatabase(address, { mayMigrate });
  const { redact } = options;
  return openLedgerIn({ ...options, db }, (tasks) => createPostgresStore(db, { redact, tasks }));
};
