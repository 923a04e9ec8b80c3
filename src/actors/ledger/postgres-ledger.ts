import type { Store } from '../store/port.ts';
import type { PostgresAddress } from '../store/postgres/address.ts';
import { openPostgresDatabase, type PostgresDatabase } from '../store/postgres/database.ts';
import { createPostgresStore } from '../store/postgres.ts';
import { type LedgerOptions, type OpenedLedger, openLedgerIn } from './ledger.ts';

/** As `openLedgerIn`, in PostgreSQL. Rejects with a StoreError. */
export const openPostgresLedger = async (
  address: PostgresAddress,
  options: Omit<LedgerOptions<PostgresDatabase>, 'db'>,
): Promise<OpenedLedger<PostgresDatabase, Store>> => {
  const db = await openPostgresDatabase(address);
  const { redact } = options;
  return openLedgerIn({ ...options, db }, (tasks) => createPostgresStore(db, { redact, tasks }));
};
