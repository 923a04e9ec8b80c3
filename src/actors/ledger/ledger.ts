import { join } from 'node:path';
import { ServiceError } from '../../machines/errors.ts';
import type { SqliteDatabase } from '../store/database.ts';
import type { Answer, Change, CommitAnswer, NewEntry, Store } from '../store/port.ts';
import { afterAnswer, type Database, type Work } from '../store/rows/rows.ts';
import type { EditRows } from '../store/rows/write-changes.ts';
import { createSqliteStore, type SqliteStore } from '../store/sqlite.ts';
import { createExchange, type Exchange } from './exchange.ts';
import type { Exporter } from './exporter.ts';
import { issueOf } from './issue-line.ts';
import { findBdData } from './ownership.ts';
import type { ImportedTask } from './take-difference.ts';
import { createTaskTable, type TaskTable } from './task-table.ts';

/** The name in `.beads` that shows that bd keeps the tasks; undefined while they are kept here. */
const bdDataOf = (projectRoot: string): string | undefined =>
  findBdData(join(projectRoot, '.beads'));

/** The tables of the tasks, and the edits of them that a change of the store holds. */
export interface OwnTasks extends EditRows {
  readonly table: TaskTable;
  /** Calls the listener after each edit. */
  onEdit(listener: () => void): void;
}

export const createOwnTasks = (db: Database, projectRoot: string): OwnTasks => {
  const table = createTaskTable(db);
  let edited = (): void => {};
  return {
    table,
    onEdit: (listener) => {
      edited = listener;
    },
    read: table.rows,
    isCurrent: ({ revision }, row) =>
      bdDataOf(projectRoot) === undefined &&
      (row === null ? null : Number(row['revision'])) === revision,
    *write({ id, line, base }, row) {
      if (line === null) yield* table.remove(id, row);
      else if (base === undefined) yield* table.putOver(row, issueOf(line));
      else yield* table.putMerged(row, issueOf(line), { line, base });
      edited();
    },
  };
};

/** The tasks of a project without bd, in the project's database, and their file. */
export interface Ledger<Tables extends Database = Database> {
  readonly db: Tables;
  readonly table: TaskTable;
  readonly exchange: Exchange;
  /** @throws tracker_unavailable when bd keeps the tasks */
  requireOurs(): void;
}

type Commit = (change: Change) => Answer<CommitAnswer>;

export interface LedgerOptions<Tables extends Database = Database> {
  readonly db: Tables;
  readonly projectRoot: string;
  /** As `FileImportOptions.filesPrefix`. */
  readonly filesPrefix: string | null;
  /** Absent: no other server can use the tables. */
  readonly exporter?: Exporter;
  /** Removes secrets from what the journal holds. */
  readonly redact: (text: string) => string;
  /** Epoch ms. */
  readonly clock: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  /** Called while the tasks of a project's first file are added. */
  readonly onProgress?: (done: number, all: number) => void;
}

export interface OpenedLedger<Tables extends Database = Database, Opened extends Store = Store> {
  readonly ledger: Ledger<Tables>;
  readonly store: Opened;
  /** Commits imports by the journal from now on, so that its listeners see them. */
  importThrough(journal: { readonly commit: Commit }): void;
}

export const openLedgerIn = <Tables extends Database, Opened extends Store>(
  options: LedgerOptions<Tables>,
  storeWith: (tasks: OwnTasks) => Opened,
): OpenedLedger<Tables, Opened> => {
  const tasks = createOwnTasks(options.db, options.projectRoot);
  const store = storeWith(tasks);
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

/** As `openLedgerIn`, in the SQLite file of a project. */
export const openLedger = (
  options: Omit<LedgerOptions<SqliteDatabase>, 'filesPrefix'>,
): OpenedLedger<SqliteDatabase, SqliteStore> => {
  const { db, redact } = options;
  const filesPrefix = db.file === ':memory:' ? null : db.file;
  return openLedgerIn({ ...options, filesPrefix }, (tasks) =>
    createSqliteStore({ file: db.file, redact, tasks }, db),
  );
};

const createLedger = <Tables extends Database>(
  { db, projectRoot, filesPrefix, exporter, clock, log, onProgress }: LedgerOptions<Tables>,
  tasks: OwnTasks,
  commit: Commit,
): Ledger<Tables> => {
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
  const entriesOf = function* (imported: readonly ImportedTask[]): Work<readonly NewEntry[]> {
    const entries: NewEntry[] = [];
    for (const { edit, news } of imported) {
      if (news === null) continue;
      const { id: taskId } = edit;
      // The entries of a task keep their order by attempt.
      const attempt = Number((yield* newest.first(taskId))?.['attempt'] ?? 0);
      const data = JSON.stringify({ change: news.what, fields: news.keys });
      entries.push({ taskId, attempt, type: 'tracker_imported', at: clock(), data, cause: null });
    }
    return entries;
  };
  const exchange = createExchange({
    db,
    table,
    projectRoot,
    filesPrefix,
    exporter: exporter ?? null,
    isOurs: () => bdDataOf(projectRoot) === undefined,
    commit: (imported) =>
      afterAnswer(db.ask(entriesOf(imported)), (entries) =>
        commit({ tasks: imported.map(({ edit }) => edit), entries }),
      ),
    log,
    onProgress,
  });
  tasks.onEdit(exchange.changed);
  return { db, table, exchange, requireOurs };
};
