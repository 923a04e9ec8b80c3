import { storeDeadline } from '../../actors/journal/commit-answer.ts';
import { type OpenedLedger, openLedger } from '../../actors/ledger/ledger.ts';
import { openDatabase } from '../../actors/store/database.ts';
import type { HeldWait } from '../../actors/store/transactions.ts';
import { type Project, serverNameOf, stateFiles } from '../config/project.ts';
import type { StoreChoice } from '../config/store.ts';
import type { Logger } from './logger.ts';
import { requireOwnStoreFile } from './own-store-file.ts';

export interface StorePlace {
  readonly project: Project;
  readonly choice: StoreChoice;
  readonly redact: (text: string) => string;
  readonly logger: Logger;
}

/** The event loop of a server must not stop while another program holds the database. */
const heldWait: HeldWait = { blockingMs: 50, inPausesMs: storeDeadline.deadlineMs - 500 };

/** @throws StoreError */
export const openSqliteFile = (file: string, { project, redact, logger }: StorePlace) =>
  openLedger({
    db: openDatabase({ file, heldWait }),
    projectRoot: project.root,
    redact,
    clock: Date.now,
    log: logger.log,
  });

/** The store of a project, as the configuration chooses it. Rejects with a StoreError. */
export const openStore = async (place: StorePlace): Promise<OpenedLedger> => {
  const { choice, project, redact, logger } = place;
  if (choice.kind === 'sqlite') {
    requireOwnStoreFile(choice.file, project);
    return openSqliteFile(choice.file, place);
  }
  // The driver is loaded only where it is used.
  const { openPostgresLedger } = await import('../../actors/ledger/postgres-ledger.ts');
  return openPostgresLedger(choice.address, {
    projectRoot: project.root,
    filesPrefix: stateFiles(project.stateDir).exchange,
    exporter: { name: serverNameOf(project), chosen: choice.exportNode, claims: true },
    redact,
    clock: Date.now,
    log: logger.log,
  });
};
