import { createCounterRows } from './counters.ts';
import { type Database, type DatabaseOptions, openDatabase, type Row } from './database.ts';
import { createEntryFeed } from './entry-feed.ts';
import { createEntryReader, createJournalRows } from './journal-rows.ts';
import {
  type AttemptUsage,
  type Change,
  type Committed,
  type Counters,
  type Entry,
  goesOnFrom,
  type NewEntry,
  type ReadOptions,
  type RememberedRequest,
  type RemovedHistory,
  type SavedActor,
  type Step,
  type Store,
  type TaskEdit,
  type UsageDay,
} from './port.ts';
import { createUsageRows } from './usage-rows.ts';

const text = (row: Row, column: string): string => String(row[column] ?? '');

const actorOf = (row: Row): SavedActor => ({
  id: text(row, 'id'),
  taskId: text(row, 'task_id'),
  version: Number(row['version']),
  pending: Number(row['pending']) === 1,
  changedAt: Number(row['changed_at']),
  snapshot: text(row, 'snapshot'),
  revision: Number(row['revision'] ?? 0),
});

const stepOf = (row: Row): Step => ({
  taskId: text(row, 'task_id'),
  attempt: Number(row['attempt']),
  key: text(row, 'key'),
  intent: text(row, 'intent'),
  result: row['result'] === null ? null : text(row, 'result'),
});

/** Carries out the edits of tasks. Called inside the transaction. */
export interface EditRows {
  /** True while the task is as it was when the edit was made, and the tasks are kept here. */
  isCurrent(edit: TaskEdit): boolean;
  write(edit: TaskEdit): void;
}

export interface SqliteOptions extends DatabaseOptions {
  /** Removes secrets from every text. */
  readonly redact?: (text: string) => string;
  /** Absent where no change holds one. */
  readonly tasks?: EditRows;
}

/** A journal of version 2.1 that is only read lacks tables and columns of some statements. */
const lazy = <Result>(prepare: () => Result): (() => Result) => {
  let prepared: { readonly result: Result } | null = null;
  return () => {
    prepared ??= { result: prepare() };
    return prepared.result;
  };
};

/** Without a guard, revision and attempt are null. */
const saveActorSql = `
with given (id, task, version, pending, at, snapshot, attempt, revision) as (values (?, ?, ?, ?, ?, ?, ?, ?))
insert into actors (id, task_id, version, pending, changed_at, snapshot, live_attempt, revision)
select id, task, version, pending, at, snapshot,
  coalesce(attempt, (select live_attempt from actors where id = given.id), 0), 1 from given
where given.revision is null
  or (given.revision = coalesce((select revision from actors where id = given.id), 0)
    and (given.id = given.task or given.attempt = (select live_attempt from actors where id = given.task)))
on conflict (id) do update set version = excluded.version, pending = excluded.pending,
  changed_at = excluded.changed_at, snapshot = excluded.snapshot, revision = revision + 1,
  live_attempt = excluded.live_attempt`;

const prepare = (db: Database) => ({
  saveActor: lazy(() => db.prepare(saveActorSql)),
  saveStep: db.prepare(
    `insert into steps (task_id, attempt, key, intent, result) values (?, ?, ?, ?, ?)
     on conflict (task_id, attempt, key) do update set intent = excluded.intent,
       result = coalesce(excluded.result, steps.result)`,
  ),
  forgetSteps: db.prepare('delete from steps where task_id = ? and attempt <= ?'),
  steps: db.prepare('select * from steps where task_id = ? and attempt = ? order by position'),
  addRequest: db.prepare('insert or ignore into requests (id, task_id) values (?, ?)'),
  readAll: db.prepare('select * from journal where seq > ? order by seq limit ?'),
  readTask: db.prepare('select * from journal where task_id = ? and seq > ? order by seq limit ?'),
  latest: db.prepare(
    'select * from journal where task_id = ? and type = ? order by seq desc limit 1',
  ),
  latestOfPending: db.prepare(
    `select (select seq from journal where task_id = actors.id and type = ? order by seq desc limit 1) as latest
     from actors where pending = 1 and id = task_id and latest is not null order by latest`,
  ),
  keepsRemoved: lazy(
    () =>
      db
        .prepare("select 1 from pragma_table_info('histories') where name = 'removed_seq'")
        .first() !== null,
  ),
  removedOf: lazy(() =>
    db.prepare('select * from histories where task_id = ? and removed_seq is not null'),
  ),
  lastRemoved: lazy(() =>
    db.prepare(
      'select * from histories where removed_seq is not null order by removed_seq desc limit 1',
    ),
  ),
  lastSeq: db.prepare("select seq from sqlite_sequence where name = 'journal'"),
  actor: db.prepare('select * from actors where id = ?'),
  tasks: db.prepare('select * from actors where id = task_id'),
  pending: db.prepare('select * from actors where pending = 1 and id = task_id'),
  request: db.prepare('select * from requests where id = ?'),
  answer: db.prepare('update requests set answer = ? where id = ?'),
});

const noEdits: EditRows = {
  isCurrent: () => false,
  write: () => {},
};

/** Its reads answer at once. */
export interface SqliteStore extends Store {
  read(options: ReadOptions): readonly Entry[];
  latest(taskId: string, type: string): Entry | null;
  latestOfPending(type: string): readonly number[];
  lastSeq(): number;
  removed(taskId: string | null): RemovedHistory | null;
  counters(): Counters;
  usage(since: string): readonly UsageDay[];
  attempts(taskId: string): readonly AttemptUsage[];
  actor(id: string): SavedActor | null;
  steps(taskId: string, attempt: number): readonly Step[];
  tasks(filter: 'all' | 'pending'): readonly SavedActor[];
  request(id: string): RememberedRequest | null;
  check(): ReturnType<Database['check']>;
  takeOver(id: string): SavedActor | null;
}

/** Journal, actor states, steps and requests in the project's database. @throws StoreError */
export const createSqliteStore = (
  options: SqliteOptions,
  database: Database = openDatabase(options),
): SqliteStore => {
  const sql = prepare(database);
  const redact = options.redact ?? ((given: string) => given);
  const entriesOf = createEntryReader(database);
  const journalRows = lazy(() => createJournalRows(database, redact));
  const counterRows = lazy(() => createCounterRows(database));
  const usageRows = lazy(() => createUsageRows(database));
  const keepsUsage = lazy(
    () =>
      database.prepare("select 1 from sqlite_schema where name = 'usage_days'").first() !== null,
  );
  const edits = options.tasks ?? noEdits;

  /** @returns null when the change is stale */
  const apply = ({
    actor,
    guard,
    entries,
    tasks,
    step,
    forgetSteps,
    request,
  }: Change): readonly NewEntry[] | null => {
    if (tasks?.every((edit) => edits.isCurrent(edit)) === false) return null;
    if (actor !== undefined) {
      const { id, taskId, version, pending, changedAt, snapshot } = actor;
      const isPending = pending ? 1 : 0;
      const { attempt = null, revision = null } = guard ?? {};
      const { changes } = sql
        .saveActor()
        .run(id, taskId, version, isPending, changedAt, redact(snapshot), attempt, revision);
      if (changes === 0) return null;
    }
    for (const edit of tasks ?? []) edits.write(edit);
    if (step !== undefined) {
      const { taskId, attempt, key, intent, result } = step;
      sql.saveStep.run(
        taskId,
        attempt,
        key,
        redact(intent),
        result === null ? null : redact(result),
      );
    }
    if (forgetSteps !== undefined) sql.forgetSteps.run(forgetSteps.taskId, forgetSteps.attempt);
    if (request !== undefined) sql.addRequest.run(request.id, request.taskId);
    return entries;
  };
  const write = (changes: readonly Change[]): Committed => {
    counterRows().begin();
    const stale: Change[] = [];
    const given = changes.flatMap((change) => {
      // What goes on from a stale change is stale, whatever the revision is now.
      const { actor } = change;
      const follows = actor !== undefined && stale.some((other) => goesOnFrom(other, actor));
      const added = follows ? null : apply(change);
      if (added === null) stale.push(change);
      return added ?? [];
    });
    const entries = journalRows()(given);
    counterRows().add(entries);
    usageRows().add(entries);
    return { entries, stale };
  };

  const savedActor = (id: string): SavedActor | null => {
    const row = sql.actor.first(id);
    return row === null ? null : actorOf(row);
  };

  const lastSeq = (): number => Number(sql.lastSeq.first()?.['seq'] ?? 0);
  const feed = createEntryFeed((after, limit) => entriesOf(sql.readAll.all(after, limit)), lastSeq);
  const shown = (committed: Committed): Committed => {
    feed.committed(committed.entries);
    return committed;
  };

  return {
    commit: (...changes) => {
      const answer = database.write(() => write(changes));
      return answer instanceof Promise ? answer.then(shown) : shown(answer);
    },
    takeOver: savedActor,
    subscribe: feed.subscribe,
    read: ({ taskId, after, limit }: ReadOptions) =>
      entriesOf(
        taskId === undefined
          ? sql.readAll.all(after, limit)
          : sql.readTask.all(taskId, after, limit),
      ),
    latest: (taskId, type) => entriesOf(sql.latest.all(taskId, type))[0] ?? null,
    latestOfPending: (type) => sql.latestOfPending.all(type).map((row) => Number(row['latest'])),
    lastSeq,
    removed: (taskId) => {
      if (!sql.keepsRemoved()) return null;
      const row = taskId === null ? sql.lastRemoved().first() : sql.removedOf().first(taskId);
      if (row === null) return null;
      return {
        seq: Number(row['removed_seq']),
        at: Number(row['removed_at']),
        days: Number(row['removed_days']),
      };
    },
    actor: savedActor,
    steps: (taskId, attempt) => sql.steps.all(taskId, attempt).map(stepOf),
    tasks: (filter) => (filter === 'all' ? sql.tasks : sql.pending).all().map(actorOf),
    request: (id) => {
      const row = sql.request.first(id);
      if (row === null) return null;
      return {
        taskId: text(row, 'task_id'),
        answer: row['answer'] === null ? null : text(row, 'answer'),
      };
    },
    counters: () => counterRows().read(),
    usage: (since) => (keepsUsage() ? usageRows().days(since) : []),
    attempts: (taskId) => (keepsUsage() ? usageRows().attempts(taskId) : []),
    rememberAnswer: (requestId, answer) =>
      database.write(() => void sql.answer.run(redact(answer), requestId)),
    check: database.check,
    close: database.close,
  };
};
