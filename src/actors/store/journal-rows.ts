import type { Database, Row } from './database.ts';
import { hashOfEntry } from './hash-chain.ts';
import { type Entry, type NewEntry, StoreError } from './port.ts';
import { createSnapshotBase, type SnapshotBase, withBase } from './snapshot-data.ts';
import { type StoredEntry, storedEntryOf } from './stored-entry.ts';

/** Entries of rows, each with its whole data. */
export const createEntryReader = (db: Database): ((rows: readonly Row[]) => readonly Entry[]) => {
  const dataOf = db.prepare('select data from journal where seq = ?');
  return (rows) => {
    const bases = new Map<number, string>();
    const baseOf = (seq: number, needed: number): string => {
      const known = bases.get(needed) ?? dataOf.first(needed)?.['data'];
      if (known == null)
        throw new StoreError(
          `entry ${seq} of the journal needs entry ${needed}, which is gone; see agent doctor --journal`,
        );
      bases.set(needed, String(known));
      return String(known);
    };
    return rows.map((row) => {
      const { base, ...entry } = storedEntryOf(row);
      return base === null
        ? entry
        : { ...entry, data: withBase(entry.data, baseOf(entry.seq, base)) };
    });
  };
};

/**
 * Writes the entries of one transaction. It is the only writer of the journal: no entry is without
 * its hash.
 */
export type AddEntries = (entries: readonly NewEntry[]) => readonly Entry[];

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
  const lastSeq = db.prepare("select seq from sqlite_sequence where name = 'journal'");
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
  const endOf = (taskId: string): History => {
    const row = end.first(taskId);
    return {
      hash: String(row?.['hash'] ?? ''),
      taskSeq: Number(row?.['task_seq'] ?? 0),
      base: row?.['base'] == null ? null : Number(row['base']),
      snapshot: null,
    };
  };
  const snapshotAt = (seq: number): SnapshotBase =>
    createSnapshotBase(String(dataOf.first(seq)?.['data'] ?? 'null'));
  /** A snapshot as it is kept: by what changed since the task's last whole one. */
  const shortened = (entry: Entry, history: History): StoredEntry => {
    const { base } = history;
    if (entry.type !== 'snapshot' || base === null) return { ...entry, base: null };
    history.snapshot ??= snapshotAt(base);
    const shorter = history.snapshot.shorten(entry.data);
    return shorter === null ? { ...entry, base: null } : { ...entry, data: shorter, base };
  };
  const addTo = (history: History, entry: Entry): void => {
    const { seq, taskId, taskSeq, attempt, type, at, cause } = entry;
    const { data, base } = shortened(entry, history);
    const previous = history.hash;
    history.hash = hashOfEntry(previous, { ...entry, data, base });
    insert.run(
      ...[seq, taskId, taskSeq, attempt, type, at, data, cause, base, previous, history.hash],
    );
    if (type === 'snapshot' && base === null) {
      history.base = seq;
      history.snapshot = null;
    }
  };
  return (entries) => {
    if (entries.length === 0) return [];
    let last = Number(lastSeq.first()?.['seq'] ?? 0);
    const histories = new Map<string, History>();
    const historyOf = (taskId: string): History => {
      const known = histories.get(taskId);
      if (known !== undefined) return known;
      const history = endOf(taskId);
      histories.set(taskId, history);
      return history;
    };
    const added = entries.map((given): Entry => {
      const history = historyOf(given.taskId);
      last += 1;
      history.taskSeq += 1;
      const { taskSeq } = history;
      const cause = given.cause === null ? null : redact(given.cause);
      const entry = { ...given, seq: last, taskSeq, data: redact(given.data), cause };
      addTo(history, entry);
      return entry;
    });
    for (const [taskId, { hash, taskSeq, base }] of histories)
      keep.run(taskId, hash, taskSeq, base);
    return added;
  };
};
