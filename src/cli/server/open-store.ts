import { storeDeadline } from '../../actors/journal/commit-answer.ts';
import { openLedger } from '../../actors/ledger/ledger.ts';
import { openDatabase } from '../../actors/store/database.ts';
import type { HeldWait } from '../../actors/store/transactions.ts';
import { type Project, taskFiles } from '../config/project.ts';
import type { Logger } from './logger.ts';

export interface StorePlace {
  readonly project: Project;
  readonly redact: (text: string) => string;
  readonly logger: Logger;
}

/** The event loop of a server must not stop while another program holds the database. */
const heldWait: HeldWait = { blockingMs: 50, inPausesMs: storeDeadline.deadlineMs - 500 };

/** The project's database. @throws StoreError */
export const openStore = ({ project, redact, logger }: StorePlace) =>
  openLedger({
    db: openDatabase({ file: taskFiles(project).journal, heldWait }),
    projectRoot: project.root,
    redact,
    clock: Date.now,
    log: logger.log,
  });
