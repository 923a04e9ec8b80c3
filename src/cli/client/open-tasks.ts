import { existsSync } from 'node:fs';
import { issuesFileOf } from '../../actors/ledger/issues-file.ts';
import { type Ledger, type LedgerOptions, openLedger } from '../../actors/ledger/ledger.ts';
import { openDatabase, type SqliteDatabase } from '../../actors/store/database.ts';
import type { Store } from '../../actors/store/port.ts';
import { type Project, serverNameOf, stateFiles } from '../config/places/project.ts';
import type { StoreChoice } from '../config/store.ts';
import { keepOwner } from '../server/lock-project.ts';
import { requireOwnStoreFile } from '../server/own-store-file.ts';
import { ensurePrivateFolder, StateFolderError } from '../server/secrets/private-files.ts';

export interface OpenedTasks {
  readonly ledger: Ledger;
  readonly store: Store;
}

/** True when a command could read something. */
export const hasTasks = (project: Project, choice: StoreChoice): boolean =>
  choice.kind === 'postgres' || existsSync(choice.file) || existsSync(issuesFileOf(project.root));

/** As `hasTasks`; asks PostgreSQL. Rejects with a StoreError. */
export const hasStore = async (project: Project, choice: StoreChoice): Promise<boolean> => {
  if (choice.kind === 'sqlite') return hasTasks(project, choice);
  const { hasTables } = await import('../../actors/store/postgres/migrate.ts');
  return hasTables(choice.address);
};

const keepFolder = async ({ stateDir, root }: Project): Promise<void> => {
  ensurePrivateFolder(stateDir);
  await keepOwner(stateFiles(stateDir).owner, root);
};

/** A state folder that cannot be written can still be read. */
const openKept = async (project: Project, file: string): Promise<SqliteDatabase> => {
  try {
    await keepFolder(project);
    requireOwnStoreFile(file, project);
  } catch (error) {
    if (!(error instanceof StateFolderError) || !existsSync(file)) throw error;
    return openDatabase({ file, readonly: true });
  }
  return openDatabase({ file });
};

/**
 * Opens the project's database for a command without a server. With `kept` false it is one in
 * memory, which ends with the command: a look at a folder without tasks leaves nothing behind.
 * Rejects with a StoreError, PrivateFileError or StateFolderError.
 */
export const openTasks = async (
  project: Project,
  {
    kept,
    choice,
    ...told
  }: { readonly kept: boolean; readonly choice: StoreChoice } & Pick<
    LedgerOptions,
    'redact' | 'log' | 'onProgress'
  >,
): Promise<OpenedTasks> => {
  const options = { projectRoot: project.root, clock: Date.now, ...told };
  if (!kept) return openLedger({ db: openDatabase({ file: ':memory:' }), ...options });
  if (choice.kind === 'sqlite')
    return openLedger({ db: await openKept(project, choice.file), ...options });
  await keepFolder(project);
  const { openPostgresLedger } = await import('../../actors/ledger/postgres-ledger.ts');
  return openPostgresLedger(choice.address, {
    mayMigrate: false,
    filesPrefix: stateFiles(project.stateDir).exchange,
    exporter: { name: serverNameOf(project), chosen: choice.exportNode, claims: false },
    ...options,
  });
};
