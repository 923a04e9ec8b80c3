import { hashOfEntry } from './hash-chain.ts';
import { type Entry, type NewEntry, StoreError } from './port.ts';
import type { Database, Row, Work } from './rows.ts';
import { createSnapshotBase, type SnapshotBase, withBase } from './snapshot-data.ts';
import { type StoredEntry, storedEntryOf } from './stored-entry.ts';

/** Entries of rows, each with its whole data. */
export const createEntryReader = (
  db: Database,
): ((rows: readonly Row[]) => Work<readonly Entry[]>) => {
  const dataOf = db.prepare('select data from journal where seq = ?');
  return function* (rows) {
    const bases = new Map<number, string>();
    const baseOf = function* (seq: number, needed: number): Work<string> {
      const known = bases.get(needed) ?? (yield* dataOf.first(needed))?.['data'];
      if (known == null)
        throw new StoreError(
          `entry ${seq} of the journal needs entry ${needed}, which is gone; see agent doctor --journal`,
        );
      bases.set(needed, String(known));
      return String(known);
    };
    const entries: Entry[] = [];
    for (const row of rows) {
      const { base, ...entry } = storedEntryOf(row);
      if (base === null) entries.push(entry);
      else entries.push({ ...entry, data: withBase(entry.data, yield* baseOf(entry.seq, base)) });
    }
    return entries;
  };
};

/**
 * Writes the entries of one transaction. It is the only writer of the journal: no entry is without
 * its hash.
 */
export type AddEntries = (entries: readonly NewEntry[]) => Work<readonly Entry[]>;

/** The end of a task's journal, which its next entry continues. */
interface History {
  hash: string;
  taskSeq: number;
  /** The last whole snapshot. */
  base: number | null;
  /** That snapshot, once another one is compared with it. */
  snapshot: SnapshotBase | null;
}

export const createJournalRows = (db: Database, redact: (text: string) => string): AddEntries => {
  const end = db.prepare(
    'select last_hash as hash, last_task_seq as task_seq, base from histories where task_id = ?',
  );
  const dataOf = db.prepare('select data from journal where seq = ?');
  const insert = db.prepare(
    `insert into journal
       (seq, task_id, task_seq, attempt, type, at, data, cause, base, previous, hash)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const keep = db.prepare(
    `insert into histories (task_id, last_hash, last_task_seq, base) values (?, ?, ?, ?)
     on conflict (task_id) do update set last_hash = excluded.last_hash,
       last_task_seq = excluded.last_task_seq, base = excluded.base`,
  );
  const endOf = function* (taskId: string): Work<History> {
    const row = yield* end.first(taskId);
    return {
      hash: String(row?.['hash'] ?? ''),
      taskSeq: Number(row?.['task_seq'] ?? 0),
      base: row?.['base'] == null ? null : Number(row['base']),
      snapshot: null,
    };
  };
  const snapshotAt = function* (seq: number): Work<SnapshotBase> {
    return createSnapshotBase(String((yield* dataOf.first(seq))?.['data'] ?? 'null'));
  };
  /** A snapshot as it is kept: by what changed since the task's last whole one. */
  const shortened = function* (entry: Entry, history: History): Work<StoredEntry> {
    const { base } = history;
    if (base === null) return { ...entry, base: null };
    history.snapshot ??= yield* snapshotAt(base);
    const shorter = history.snapshot.shorten(entry.data);
    return shorter === null ? { ...entry, base: null } : { ...entry, data: shorter, base };
  };
  const addTo = function* (history: History, entry: Entry): Work<void> {
    const { seq, taskId, taskSeq, attempt, type, at, cause } = entry;
    const { data, base } =
      type === 'snapshot' ? yield* shortened(entry, history) : { data: entry.data, base: null };
    const previous = history.hash;
    history.hash = hashOfEntry(previous, { ...entry, data, base });
    yield* insert.send(
      ...[seq, taskId, taskSeq, attempt, type, at, data, cause, base, previous, history.hash],
    );
    if (type === 'snapshot' && base === null) {
      history.base = seq;
      history.snapshot = null;
    }
  };
  return function* (entries) {
    if (entries.length === 0) return [];
    let last = yield* db.lastSeq();
    const histories = new Map<string, History>();
    const added: Entry[] = [];
    for (const given of entries) {
      const history = histories.get(given.taskId) ?? (yield* endOf(given.taskId));
      histories.set(given.taskId, history);
      last += 1;
      history.taskSeq += 1;
      const { taskSeq } = history;
      const cause = given.cause === null ? null : redact(given.cause);
      const entry = { ...given, seq: last, taskSeq, data: redact(given.data), cause };
      yield* addTo(history, entry);
      added.push(entry);
    }
    for (const [taskId, { hash, taskSeq, base }] of histories)
      yield* keep.send(taskId, hash, taskSeq, base);
    yield* db.added(last);
    return added;
  };
};
