import { ServiceError } from '../../machines/errors.ts';
import type { Database } from '../store/database.ts';
import type { Change, CommitAnswer, NewEntry } from '../store/port.ts';
import { createSqliteStore, type SqliteStore } from '../store/sqlite.ts';
import { createExchange, type Exchange } from './exchange.ts';
import { bdDataOf, createOwnTasks, type OwnTasks } from './own-tasks.ts';
import type { ImportedTask } from './take-difference.ts';
import type { TaskTable } from './task-table.ts';

/** The tasks of a project without bd, in the project's database, and their file. */
export interface Ledger {
  readonly db: Database;
  readonly table: TaskTable;
  readonly exchange: Exchange;
  /** @throws tracker_unavailable when bd keeps the tasks */
  requireOurs(): void;
}

type Commit = (change: Change) => CommitAnswer | Promise<CommitAnswer>;

export interface LedgerOptions {
  readonly db: Database;
  readonly projectRoot: string;
  /** Removes secrets from what the journal holds. */
  readonly redact: (text: string) => string;
  /** Epoch ms. */
  readonly clock: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  /** Called while the tasks of a project's first file are added. */
  readonly onProgress?: (done: number, all: number) => void;
}

export interface OpenedLedger {
  readonly ledger: Ledger;
  readonly store: SqliteStore;
  /** Commits imports by the journal from now on, so that its listeners see them. */
  importThrough(journal: { readonly commit: Commit }): void;
}

/** The store and the tasks of one database. */
export const openLedger = (options: LedgerOptions): OpenedLedger => {
  const { db, projectRoot, redact } = options;
  const tasks = createOwnTasks(db, projectRoot);
  const store = createSqliteStore({ file: db.file, redact, tasks }, db);
  let commit: Commit = async (change) => {
    const { stale } = await store.commit(change);
    return stale.length === 0 ? 'ok' : 'stale';
  };
  return {
    store,
    ledger: createLedger(options, tasks, (change) => commit(change)),
    importThrough: (journal) => {
      commit = journal.commit;
    },
  };
};

const createLedger = (
  { db, projectRoot, clock, log, onProgress }: LedgerOptions,
  tasks: OwnTasks,
  commit: Commit,
): Ledger => {
  const { table } = tasks;
  const newest = db.prepare(
    'select attempt from journal where task_id = ? order by seq desc limit 1',
  );
  const requireOurs = (): void => {
    const sign = bdDataOf(projectRoot);
    if (sign === undefined) return;
    const detail = `bd keeps this project's tasks in its own database (.beads/${sign})`;
    throw new ServiceError('tracker_unavailable', { detail, remedy: 'install bd and use it' });
  };
  const entriesOf = ({ edit: { id: taskId }, news }: ImportedTask): readonly NewEntry[] => {
    if (news === null) return [];
    // The entries of a task keep their order by attempt.
    const attempt = Number(newest.first(taskId)?.['attempt'] ?? 0);
    const data = JSON.stringify({ change: news.what, fields: news.keys });
    return [{ taskId, attempt, type: 'tracker_imported', at: clock(), data, cause: null }];
  };
  const exchange = createExchange({
    db,
    table,
    projectRoot,
    isOurs: () => bdDataOf(projectRoot) === undefined,
    commit: (imported) =>
      commit({
        tasks: imported.map(({ edit }) => edit),
        entries: imported.flatMap((each) => entriesOf(each)),
      }),
    log,
    onProgress,
  });
  tasks.onEdit(exchange.changed);
  return { db, table, exchange, requireOurs };
};
