import { type Database, type DatabaseOptions, openDatabase, type Row } from './database.ts';
import { createEntryFeed } from './entry-feed.ts';
import { createEntryReader } from './journal-rows.ts';
import type {
  ActorReads,
  Committed,
  Entry,
  EntryReads,
  ReadOptions,
  RemovedHistory,
  SavedActor,
  Step,
  Store,
  UsageReads,
} from './port.ts';
import { lazy, prepareStatements } from './store-statements.ts';
import { keptEntryOf } from './stored-entry.ts';
import { createUsageRows } from './usage-rows.ts';
import { createChangeWriter, type EditRows } from './write-changes.ts';

const text = (row: Row, column: string): string => String(row[column] ?? '');

const actorOf = (row: Row): SavedActor => ({
  id: text(row, 'id'),
  taskId: text(row, 'task_id'),
  version: Number(row['version']),
  pending: Number(row['pending']) === 1,
  changedAt: Number(row['changed_at']),
  snapshot: text(row, 'snapshot'),
  revision: Number(row['revision'] ?? 0),
  owner: row['owner'] == null ? null : text(row, 'owner'),
});

const stepOf = (row: Row): Step => ({
  taskId: text(row, 'task_id'),
  attempt: Number(row['attempt']),
  key: text(row, 'key'),
  intent: text(row, 'intent'),
  result: row['result'] === null ? null : text(row, 'result'),
});

const removedOf = (row: Row): RemovedHistory => ({
  seq: Number(row['removed_seq']),
  at: Number(row['removed_at']),
  days: Number(row['removed_days']),
});

export interface SqliteOptions extends DatabaseOptions {
  /** Removes secrets from every text. */
  readonly redact: (text: string) => string;
  /** Absent where no change holds one. */
  readonly tasks?: EditRows;
}

type ReadName =
  | keyof EntryReads
  | keyof UsageReads
  | keyof ActorReads
  | 'request'
  | 'takeOver'
  | 'check';

/** Limits one read for a subscriber that is behind. */
const entriesPerFeedRead = 256;

/** Its reads answer at once. */
export type SqliteStore = Omit<Store, ReadName> & {
  readonly [Name in ReadName]: (
    ...given: Parameters<Store[Name]>
  ) => Awaited<ReturnType<Store[Name]>>;
};

/** Journal, actor states, steps and requests in the project's database. @throws StoreError */
export const createSqliteStore = (
  options: SqliteOptions,
  database: Database = openDatabase(options),
): SqliteStore => {
  const sql = prepareStatements(database);
  const { redact } = options;
  const entriesOf = createEntryReader(database);
  const usageRows = lazy(() => createUsageRows(database));
  const keepsUsage = lazy(
    () =>
      database.prepare("select 1 from sqlite_schema where name = 'usage_days'").first() !== null,
  );
  const writer = createChangeWriter(database, sql, { redact, edits: options.tasks, usageRows });

  const savedActor = (id: string): SavedActor | null => {
    const row = sql.actor.first(id);
    return row === null ? null : actorOf(row);
  };

  const lastSeq = (): number => Number(sql.lastSeq.first()?.['seq'] ?? 0);
  const read = ({ taskId, after, limit }: ReadOptions): readonly Entry[] =>
    entriesOf(
      taskId === undefined ? sql.readAll.all(after, limit) : sql.readTask.all(taskId, after, limit),
    );
  const feed = createEntryFeed(
    (taskId, after) =>
      read({ ...(taskId === null ? {} : { taskId }), after, limit: entriesPerFeedRead }),
    lastSeq,
  );
  const shown = (committed: Committed): Committed => {
    feed.committed(committed.entries);
    return committed;
  };

  return {
    commit: (...changes) => {
      const answer = database.write(() => writer.write(changes));
      return answer instanceof Promise ? answer.then(shown) : shown(answer);
    },
    join: (lease) => database.write(() => writer.nodes().join(lease)),
    renew: (node) => database.write(() => writer.nodes().renew(node)),
    takeOver: savedActor,
    subscribe: feed.subscribe,
    read,
    kept: ({ taskId, after, limit }) => sql.readTask.all(taskId, after, limit).map(keptEntryOf),
    latest: (taskId, type) => entriesOf(sql.latest.all(taskId, type))[0] ?? null,
    latestOfPending: (type) => sql.latestOfPending.all(type).map((row) => Number(row['latest'])),
    lastSeq,
    removed: (taskId) => {
      if (!sql.keepsRemoved()) return null;
      const row = taskId === null ? sql.lastRemoved().first() : sql.removedOf().first(taskId);
      return row === null ? null : removedOf(row);
    },
    actor: savedActor,
    steps: (taskId, attempt) => sql.steps.all(taskId, attempt).map(stepOf),
    workflows: () => sql.workflows().all().map(actorOf),
    tasks: (filter) => (filter === 'all' ? sql.tasks : sql.pending).all().map(actorOf),
    request: (id) => {
      const row = sql.request.first(id);
      if (row === null) return null;
      return {
        taskId: text(row, 'task_id'),
        answer: row['answer'] === null ? null : text(row, 'answer'),
      };
    },
    counters: writer.counters,
    usage: (since) => (keepsUsage() ? usageRows().days(since) : []),
    attempts: (taskId) => (keepsUsage() ? usageRows().attempts(taskId) : []),
    rememberAnswer: (requestId, answer) =>
      database.write(() => void sql.answer.run(redact(answer), requestId)),
    check: database.check,
    close: () => {
      feed.close();
      database.close();
    },
  };
};
