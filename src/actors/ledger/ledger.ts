import { join } from 'node:path';
import { ServiceError } from '../../machines/errors.ts';
import type { Database } from '../store/database.ts';
import type { NewEntry } from '../store/port.ts';
import { createExchange, type Exchange } from './exchange.ts';
import { findBdData } from './ownership.ts';
import type { ImportedChange } from './take-difference.ts';
import { createTaskTable, type TaskTable } from './task-table.ts';

/** The tasks of a project without bd, in the project's database, and their file. */
export interface Ledger {
  readonly db: Database;
  readonly table: TaskTable;
  readonly exchange: Exchange;
  /** @throws tracker_unavailable when bd keeps the tasks */
  requireOurs(): void;
}

/** Commits entries together with the work that gives them. */
export type Commit = (work: () => readonly NewEntry[]) => void;

export interface LedgerOptions {
  readonly db: Database;
  readonly projectRoot: string;
  /** Epoch ms. */
  readonly clock: () => number;
  readonly commit: Commit;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export const createLedger = ({ db, projectRoot, clock, commit, log }: LedgerOptions): Ledger => {
  const table = createTaskTable(db);
  const newest = db.prepare('select attempt from journal where task_id = ? order by seq desc limit 1');
  const bdData = (): string | undefined => findBdData(join(projectRoot, '.beads'));
  const requireOurs = (): void => {
    const sign = bdData();
    if (sign === undefined) return;
    const detail = `bd keeps this project's tasks in its own database (.beads/${sign})`;
    throw new ServiceError('tracker_unavailable', { detail, remedy: 'install bd and use it' });
  };
  const entryOf = ({ taskId, what, keys }: ImportedChange): NewEntry => ({
    taskId,
    // The entries of a task keep their order by attempt.
    attempt: Number(newest.first(taskId)?.['attempt'] ?? 0),
    type: 'tracker_imported',
    at: clock(),
    data: JSON.stringify({ change: what, fields: keys }),
    cause: null,
  });
  const exchange = createExchange({
    db,
    table,
    projectRoot,
    isOurs: () => bdData() === undefined,
    record: (work) => commit(() => work().map(entryOf)),
    log,
  });
  return { db, table, exchange, requireOurs };
};
