import type { Database, Row } from './database.ts';
import { hashOfEntry } from './hash-chain.ts';
import { type Entry, type NewEntry, StoreError } from './port.ts';
import { withBase, withoutBase } from './snapshot-data.ts';
import { storedEntryOf } from './stored-entry.ts';

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
  /** The last whole snapshot. */
  base: number | null;
}

export const createJournalRows = (db: Database, redact: (text: string) => string): AddEntries => {
  const last = db.prepare("select seq from sqlite_sequence where name = 'journal'");
  const history = db.prepare('select last_hash, base from histories where task_id = ?');
  const dataOf = db.prepare('select data from journal where seq = ?');
  const insert = db.prepare(
    `insert into journal (seq, task_id, attempt, type, at, data, cause, base, previous, hash)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const keep = db.prepare(
    `insert into histories (task_id, last_hash, base) values (?, ?, ?)
     on conflict (task_id) do update set last_hash = excluded.last_hash, base = excluded.base`,
  );
  const historyOf = (taskId: string): History => {
    const row = history.first(taskId);
    return {
      hash: String(row?.['last_hash'] ?? ''),
      base: row?.['base'] == null ? null : Number(row['base']),
    };
  };
  /** A snapshot as it is kept: by what changed since the task's last whole one. */
  const shorten = (
    data: string,
    base: number | null,
  ): { readonly data: string; readonly base: number | null } => {
    const whole = base === null ? undefined : dataOf.first(base)?.['data'];
    const shorter = whole == null ? null : withoutBase(data, String(whole));
    return shorter === null ? { data, base: null } : { data: shorter, base };
  };
  const addTo = (before: History, entry: Entry): void => {
    const { seq, taskId, attempt, type, at, cause } = entry;
    const isSnapshot = type === 'snapshot';
    const stored = {
      ...entry,
      ...(isSnapshot ? shorten(entry.data, before.base) : { base: null }),
    };
    const hash = hashOfEntry(before.hash, stored);
    insert.run(seq, taskId, attempt, type, at, stored.data, cause, stored.base, before.hash, hash);
    before.hash = hash;
    if (isSnapshot && stored.base === null) before.base = seq;
  };
  return (entries) => {
    if (entries.length === 0) return [];
    let seq = Number(last.first()?.['seq'] ?? 0);
    const histories = new Map<string, History>();
    const added = entries.map((given): Entry => {
      seq += 1;
      const cause = given.cause === null ? null : redact(given.cause);
      const entry = { ...given, seq, data: redact(given.data), cause };
      const before = histories.get(entry.taskId) ?? historyOf(entry.taskId);
      histories.set(entry.taskId, before);
      addTo(before, entry);
      return entry;
    });
    for (const [taskId, { hash, base }] of histories) keep.run(taskId, hash, base);
    return added;
  };
};
