import { createEntryFeed } from './entry-feed.ts';
import { createEntryReader } from './journal-rows.ts';
import type {
  Committed,
  EndedAt,
  Entry,
  ReadOptions,
  RememberedRequest,
  RemovedHistory,
  SavedActor,
  Step,
  Store,
} from './port.ts';
import {
  afterAnswer,
  type Database,
  type Row,
  rowsOfMany,
  type Statement,
  type Value,
  type Work,
} from './rows.ts';
import { createSharedSlots } from './shared-slots.ts';
import { lazy, prepareStatements, type StoreStatements } from './store-statements.ts';
import { keptEntryOf, textOrNull } from './stored-entry.ts';
import { createUsageRows, type UsageRows } from './usage-rows.ts';
import { createChangeWriter, type EditRows } from './write-changes.ts';

const textOfColumn = (row: Row, column: string): string => String(row[column] ?? '');

const actorOf = (row: Row): SavedActor => ({
  id: textOfColumn(row, 'id'),
  taskId: textOfColumn(row, 'task_id'),
  version: Number(row['version']),
  pending: Number(row['pending']) === 1,
  changedAt: Number(row['changed_at']),
  snapshot: textOfColumn(row, 'snapshot'),
  revision: Number(row['revision'] ?? 0),
  owner: row['owner'] == null ? null : textOfColumn(row, 'owner'),
  restores: Number(row['restores'] ?? 0),
  ...(row['waits_role'] == null
    ? {}
    : { waits: { role: String(row['waits_role']), priority: Number(row['waits_priority']) } }),
});

const stepOf = (row: Row): Step => ({
  taskId: textOfColumn(row, 'task_id'),
  attempt: Number(row['attempt']),
  key: textOfColumn(row, 'key'),
  intent: textOfColumn(row, 'intent'),
  result: row['result'] === null ? null : textOfColumn(row, 'result'),
});

const removedOf = (row: Row): RemovedHistory => ({
  seq: Number(row['removed_seq']),
  at: Number(row['removed_at']),
  days: Number(row['removed_days']),
});

export interface RowStoreOptions {
  /** Removes secrets from every text. */
  readonly redact: (text: string) => string;
  /** Absent where no change holds one. */
  readonly tasks?: EditRows | undefined;
}

/** What a process knows of the journal without asking. */
export interface JournalEnd {
  lastSeq(): number;
  /** Entries up to this one were read. */
  reached?(seq: number): void;
  /** Calls the listener after other programs have committed, where the database tells it. */
  onCommitOfOthers?(listener: (lastSeq: number) => void): void;
}

/** A place before the newest of the actors that are over. */
const firstEnd: EndedAt = { id: '', changedAt: Number.MAX_SAFE_INTEGER };

const createRowReads = (database: Database, sql: StoreStatements, usageRows: () => UsageRows) => {
  const entriesOf = createEntryReader(database);
  const savedActor = function* (id: string): Work<SavedActor | null> {
    const row = yield* sql.actor.first(id);
    return row === null ? null : actorOf(row);
  };
  const actorsOf = function* (
    statement: Statement,
    ...values: readonly Value[]
  ): Work<readonly SavedActor[]> {
    return (yield* statement.all(...values)).map(actorOf);
  };
  const readRows = ({ taskId, after, limit }: ReadOptions): Work<readonly Row[]> =>
    taskId === undefined ? sql.readAll.all(after, limit) : sql.readTask.all(taskId, after, limit);
  const entriesIn = function* (rows: Work<readonly Row[]>): Work<readonly Entry[]> {
    return yield* entriesOf(yield* rows);
  };
  const removed = function* (taskId: string | null): Work<RemovedHistory | null> {
    if (!(yield* database.has('histories', 'removed_seq'))) return null;
    const found = taskId === null ? sql.lastRemoved().first() : sql.removedOf().first(taskId);
    const row = yield* found;
    return row === null ? null : removedOf(row);
  };
  const request = function* (id: string): Work<RememberedRequest | null> {
    const row = yield* sql.request.first(id);
    return row === null
      ? null
      : { taskId: textOfColumn(row, 'task_id'), answer: textOrNull(row, 'answer') };
  };
  /** A journal of version 2.1 that is only read keeps none. */
  const usageOf = function* <Result>(
    work: (rows: UsageRows) => Work<readonly Result[]>,
  ): Work<readonly Result[]> {
    return (yield* database.has('usage_days', 'day')) ? yield* work(usageRows()) : [];
  };
  return { savedActor, actorsOf, entriesIn, readRows, removed, request, usageOf };
};

/** Journal, actor states, steps and requests in the tables of a database. */
export const createRowStore = (
  database: Database,
  { redact, tasks: edits }: RowStoreOptions,
  end: JournalEnd,
): Store => {
  const sql = prepareStatements(database);
  const usageRows = lazy(() => createUsageRows(database));
  const writer = createChangeWriter(database, sql, { redact, edits, usageRows });
  const slots = lazy(() => createSharedSlots(database));
  const { ask } = database;

  const reads = createRowReads(database, sql, usageRows);
  const { savedActor, actorsOf, entriesIn, readRows, removed, request, usageOf } = reads;

  const feed = createEntryFeed(
    (taskId, after, limit) =>
      afterAnswer(
        ask(entriesIn(readRows({ ...(taskId === null ? {} : { taskId }), after, limit }))),
        (entries) => {
          end.reached?.(entries.at(-1)?.seq ?? 0);
          return entries;
        },
      ),
    end.lastSeq,
  );
  end.onCommitOfOthers?.(feed.committedElsewhere);
  const shown = (committed: Committed): Committed => {
    feed.committed(committed.entries);
    return committed;
  };

  return {
    commit: (...changes) =>
      afterAnswer(
        database.write(() => writer.write(changes)),
        shown,
      ),
    join: (lease) => database.write(() => writer.nodes().join(lease)),
    renew: (node, facts) => database.write(() => writer.nodes().renew(node, facts)),
    takeOverFrom: (node, servers, charts) =>
      database.write(() => writer.nodes().takeOverFrom(node, servers, charts)),
    withoutServer: (limit) => ask(writer.nodes().withoutServer(limit)),
    nodes: () => ask(writer.nodes().nodes()),
    loads: () => ask(slots().loads()),
    share: (node, wish) => database.write(() => slots().share(node, wish)),
    takeWaiting: (node, limit, able) =>
      database.write(() => slots().takeWaiting(node, limit, able)),
    countRestores: (node, taskIds) =>
      database.write(() => writer.nodes().countRestores(node, taskIds)),
    forgetRestores: (taskId) =>
      database.write(function* () {
        yield* sql.forgetRestores().run(taskId);
      }),
    leave: (node) => database.write(() => writer.nodes().leave(node)),
    takeOver: (id) => ask(savedActor(id)),
    subscribe: feed.subscribe,
    read: (options) => ask(entriesIn(readRows(options))),
    kept: (options) => afterAnswer(ask(readRows(options)), (rows) => rows.map(keptEntryOf)),
    latest: (taskId, type) =>
      afterAnswer(ask(entriesIn(sql.latest.all(taskId, type))), ([entry = null]) => entry),
    decisions: (limit) => ask(entriesIn(sql.decisions.all(limit))),
    latestOfPending: (type) =>
      afterAnswer(ask(sql.latestOfPending.all(type)), (rows) =>
        rows.map((row) => Number(row['latest'])),
      ),
    lastSeq: () => ask(database.lastSeq()),
    removed: (taskId) => ask(removed(taskId)),
    actor: (id) => ask(savedActor(id)),
    actors: (ids) => afterAnswer(ask(rowsOfMany(sql.actorsOf, ids)), (rows) => rows.map(actorOf)),
    steps: (taskId, attempt) =>
      afterAnswer(ask(sql.steps.all(taskId, attempt)), (rows) => rows.map(stepOf)),
    openWorkflows: () => ask(actorsOf(sql.openWorkflows())),
    endedWorkflows: (limit, { id, changedAt } = firstEnd) =>
      ask(actorsOf(sql.endedWorkflows(), changedAt, id, limit)),
    tasks: (filter) => ask(actorsOf(filter === 'all' ? sql.tasks : sql.pending)),
    pendingCount: () => afterAnswer(ask(sql.pendingCount.first()), (row) => Number(row?.['count'])),
    pendingOf: (node) =>
      afterAnswer(ask(sql.pendingOf().all(node)), (rows) =>
        rows.map((row) => textOfColumn(row, 'id')),
      ),
    request: (id) => ask(request(id)),
    counters: () => ask(writer.counters()),
    usage: (since) => ask(usageOf((rows) => rows.days(since))),
    spent: (day, run) => ask(writer.spending().read(day, run)),
    attempts: (taskId) => ask(usageOf((rows) => rows.attempts(taskId))),
    rememberAnswer: (requestId, taskId, answer) =>
      database.write(function* () {
        const kept = yield* sql.answer.first(requestId, taskId, redact(answer));
        return textOfColumn(kept ?? {}, 'answer');
      }),
    check: database.check,
    close: () => {
      feed.close();
      database.close();
    },
  };
};
