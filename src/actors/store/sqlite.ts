import { chmodSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'libsql';
import { messageOf } from '../../machines/message-of.ts';
import { createWriteCheck } from '../files/free-space.ts';
import {
  type Change,
  type Entry,
  type NewEntry,
  type ReadOptions,
  type SavedActor,
  type Step,
  type Store,
  StoreError,
} from './port.ts';

const schema = `
create table if not exists journal (
  seq integer primary key autoincrement,
  task_id text not null,
  attempt integer not null,
  type text not null,
  at integer not null,
  data text not null,
  cause text
);
create index if not exists journal_by_task on journal (task_id, seq);
create table if not exists actors (
  id text primary key,
  task_id text not null,
  version integer not null,
  pending integer not null,
  changed_at integer not null,
  snapshot text not null
) without rowid;
create index if not exists actors_pending on actors (id) where pending = 1;
create table if not exists steps (
  position integer primary key,
  task_id text not null,
  attempt integer not null,
  key text not null,
  intent text not null,
  result text,
  unique (task_id, attempt, key)
);
create table if not exists requests (
  id text primary key,
  task_id text not null,
  answer text
) without rowid;
`;

type Row = Readonly<Record<string, string | number | null>>;
const text = (row: Row, column: string): string => String(row[column] ?? '');

const entryOf = (row: Row): Entry => ({
  seq: Number(row['seq']),
  taskId: text(row, 'task_id'),
  attempt: Number(row['attempt']),
  type: text(row, 'type'),
  at: Number(row['at']),
  data: text(row, 'data'),
  cause: row['cause'] === null ? null : text(row, 'cause'),
});

const actorOf = (row: Row): SavedActor => ({
  id: text(row, 'id'),
  taskId: text(row, 'task_id'),
  version: Number(row['version']),
  pending: Number(row['pending']) === 1,
  changedAt: Number(row['changed_at']),
  snapshot: text(row, 'snapshot'),
});

const stepOf = (row: Row): Step => ({
  taskId: text(row, 'task_id'),
  attempt: Number(row['attempt']),
  key: text(row, 'key'),
  intent: text(row, 'intent'),
  result: row['result'] === null ? null : text(row, 'result'),
});

export interface SqliteOptions {
  readonly file: string;
  /** Removes secrets from every text. */
  readonly redact?: (text: string) => string;
  readonly readonly?: boolean;
}

const tryToOpen = ({ file, readonly = false }: SqliteOptions): Database.Database => {
  const db = new Database(file, { timeout: 5_000 });
  if (readonly) {
    // libsql takes the option `readonly` and ignores it.
    db.pragma('query_only = on');
    return db;
  }
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(schema);
  if (file !== ':memory:') chmodSync(file, 0o600);
  return db;
};

const prepare = (db: Database.Database) => ({
  addEntry: db.prepare('insert into journal (task_id, attempt, type, at, data, cause) values (?, ?, ?, ?, ?, ?)'),
  saveActor: db.prepare(
    `insert into actors (id, task_id, version, pending, changed_at, snapshot) values (?, ?, ?, ?, ?, ?)
     on conflict (id) do update set version = excluded.version, pending = excluded.pending,
       changed_at = excluded.changed_at, snapshot = excluded.snapshot`,
  ),
  saveStep: db.prepare(
    `insert into steps (task_id, attempt, key, intent, result) values (?, ?, ?, ?, ?)
     on conflict (task_id, attempt, key) do update set intent = excluded.intent, result = excluded.result`,
  ),
  forgetSteps: db.prepare('delete from steps where task_id = ? and attempt <= ?'),
  steps: db.prepare('select * from steps where task_id = ? and attempt = ? order by position'),
  addRequest: db.prepare('insert or ignore into requests (id, task_id) values (?, ?)'),
  readAll: db.prepare('select * from journal where seq > ? order by seq limit ?'),
  readTask: db.prepare('select * from journal where task_id = ? and seq > ? order by seq limit ?'),
  latest: db.prepare('select * from journal where task_id = ? and type = ? order by seq desc limit 1'),
  latestOfPending: db.prepare(
    `select (select seq from journal where task_id = actors.id and type = ? order by seq desc limit 1) as latest
     from actors where pending = 1 and id = task_id and latest is not null order by latest`,
  ),
  lastSeq: db.prepare('select coalesce(max(seq), 0) as seq from journal'),
  actor: db.prepare('select * from actors where id = ?'),
  tasks: db.prepare('select * from actors where id = task_id'),
  pending: db.prepare('select * from actors where pending = 1 and id = task_id'),
  request: db.prepare('select * from requests where id = ?'),
  answer: db.prepare('update requests set answer = ? where id = ?'),
  probe: db.prepare('select 1 as one'),
});

/** Space that a transaction needs in the write-ahead log (bytes). */
const roomBytes = 64 * 1024;

/** SQLite's message names neither file nor cause: `disk I/O error` may mean a full disk. */
const open = (options: SqliteOptions) => {
  try {
    const db = tryToOpen(options);
    return { db, sql: prepare(db) };
  } catch (cause) {
    const words = messageOf(cause);
    throw new StoreError(
      `the journal ${options.file} cannot be opened (${words}); is the disk full or read-only, or the file not a journal?`,
      { cause },
    );
  }
};

/** One SQLite file, WAL, synced at every commit. @throws StoreError */
export const createSqliteStore = (options: SqliteOptions): Store => {
  const { db, sql } = open(options);
  const redact = options.redact ?? ((given: string) => given);
  const all = (rows: unknown): readonly Row[] => rows as readonly Row[];

  const add = (entry: NewEntry): Entry => {
    const data = redact(entry.data);
    const cause = entry.cause === null ? null : redact(entry.cause);
    const { lastInsertRowid } = sql.addEntry.run(entry.taskId, entry.attempt, entry.type, entry.at, data, cause);
    return { ...entry, data, cause, seq: Number(lastInsertRowid) };
  };
  const apply = ({ actor, entries, step, forgetSteps, request }: Change): readonly Entry[] => {
    if (actor !== undefined) {
      const { id, taskId, version, pending, changedAt, snapshot } = actor;
      sql.saveActor.run(id, taskId, version, pending ? 1 : 0, changedAt, redact(snapshot));
    }
    if (step !== undefined) {
      const { taskId, attempt, key, intent, result } = step;
      sql.saveStep.run(taskId, attempt, key, redact(intent), result === null ? null : redact(result));
    }
    if (forgetSteps !== undefined) sql.forgetSteps.run(forgetSteps.taskId, forgetSteps.attempt);
    if (request !== undefined) sql.addRequest.run(request.id, request.taskId);
    return entries.map(add);
  };
  /** libsql's `transaction` rolls back a second time, and so hides the cause (a full disk). */
  const write = (changes: readonly Change[]): readonly Entry[] => {
    db.exec('begin immediate');
    try {
      const entries = changes.flatMap(apply);
      db.exec('commit');
      return entries;
    } catch (error) {
      if (db.inTransaction) db.exec('rollback');
      throw error;
    }
  };

  const writes = createWriteCheck(dirname(options.file));
  const named = <Result>(work: () => Result): Result => {
    try {
      const result = work();
      writes.succeeded();
      return result;
    } catch (cause) {
      writes.failed(cause, roomBytes);
      const words = messageOf(cause);
      throw new StoreError(`the journal ${options.file} cannot be written: ${words}`, { cause });
    }
  };

  return {
    commit: (...changes) => named(() => write(changes)),
    read: ({ taskId, after, limit }: ReadOptions) =>
      all(taskId === undefined ? sql.readAll.all(after, limit) : sql.readTask.all(taskId, after, limit)).map(entryOf),
    latest: (taskId, type) => all(sql.latest.all(taskId, type)).map(entryOf)[0] ?? null,
    latestOfPending: (type) => all(sql.latestOfPending.all(type)).map((row) => Number(row['latest'])),
    lastSeq: () => Number(all(sql.lastSeq.all())[0]?.['seq'] ?? 0),
    actor: (id) => all(sql.actor.all(id)).map(actorOf)[0] ?? null,
    steps: (taskId, attempt) => all(sql.steps.all(taskId, attempt)).map(stepOf),
    tasks: (filter) => all(filter === 'all' ? sql.tasks.all() : sql.pending.all()).map(actorOf),
    request: (id) => {
      const row = all(sql.request.all(id))[0];
      if (row === undefined) return null;
      return { taskId: text(row, 'task_id'), answer: row['answer'] === null ? null : text(row, 'answer') };
    },
    rememberAnswer: (requestId, answer) => void sql.answer.run(redact(answer), requestId),
    check: () => {
      try {
        sql.probe.all();
        writes.require(roomBytes);
        return { ok: true, detail: 'the journal can be used' };
      } catch (error) {
        return { ok: false, detail: messageOf(error) };
      }
    },
    close: () => {
      db.close();
    },
  };
};
