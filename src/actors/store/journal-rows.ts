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
      return base === null ? entry : { ...entry, data: withBase(entry.data, baseOf(entry.seq, base)) };
    });
  };
};

/** Writes the entries of one transaction. */
export type AddEntry = (entry: NewEntry) => Entry;

/** The only writer of the journal: no entry is without its hash. */
export const createJournalRows = (db: Database, redact: (text: string) => string): (() => AddEntry) => {
  const last = db.prepare("select seq from sqlite_sequence where name = 'journal'");
  const history = db.prepare('select last_hash, base from histories where task_id = ?');
  const dataOf = db.prepare('select data from journal where seq = ?');
  const add = db.prepare(
    `insert into journal (seq, task_id, attempt, type, at, data, cause, base, previous, hash)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const keep = db.prepare(
    `insert into histories (task_id, last_hash, base) values (?, ?, ?)
     on conflict (task_id) do update set last_hash = excluded.last_hash, base = excluded.base`,
  );
  /** A snapshot as it is kept: by what changed since the task's last whole one. */
  const shorten = (data: string, base: number | null): { readonly data: string; readonly base: number | null } => {
    const whole = base === null ? undefined : dataOf.first(base)?.['data'];
    const shorter = whole == null ? null : withoutBase(data, String(whole));
    return shorter === null ? { data, base: null } : { data: shorter, base };
  };
  return () => {
    let seq = Number(last.first()?.['seq'] ?? 0);
    return (given) => {
      seq += 1;
      const cause = given.cause === null ? null : redact(given.cause);
      const entry = { ...given, seq, data: redact(given.data), cause };
      const { taskId, attempt, type, at } = entry;
      const before = history.first(taskId);
      const previous = String(before?.['last_hash'] ?? '');
      const base = before?.['base'] == null ? null : Number(before['base']);
      const isSnapshot = type === 'snapshot';
      const stored = { ...entry, ...(isSnapshot ? shorten(entry.data, base) : { base: null }) };
      const hash = hashOfEntry(previous, stored);
      add.run(seq, taskId, attempt, type, at, stored.data, cause, stored.base, previous, hash);
      keep.run(taskId, hash, isSnapshot && stored.base === null ? seq : base);
      return entry;
    };
  };
};
