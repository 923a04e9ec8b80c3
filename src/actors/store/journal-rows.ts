import type { Database, Row } from './database.ts';
import { hashOfEntry } from './hash-chain.ts';
import type { Entry, NewEntry } from './port.ts';

export const entryOf = (row: Row): Entry => ({
  seq: Number(row['seq']),
  taskId: String(row['task_id']),
  attempt: Number(row['attempt']),
  type: String(row['type']),
  at: Number(row['at']),
  data: String(row['data']),
  cause: row['cause'] === null ? null : String(row['cause']),
});

/** Writes the entries of one transaction. */
export type AddEntry = (entry: NewEntry) => Entry;

/** The only writer of the journal: no entry is without its hash. */
export const createJournalRows = (db: Database, redact: (text: string) => string): (() => AddEntry) => {
  const last = db.prepare("select seq from sqlite_sequence where name = 'journal'");
  const lastHash = db.prepare('select last_hash from histories where task_id = ?');
  const add = db.prepare(
    'insert into journal (seq, task_id, attempt, type, at, data, cause, previous, hash) values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const keepHash = db.prepare(
    `insert into histories (task_id, last_hash) values (?, ?)
     on conflict (task_id) do update set last_hash = excluded.last_hash`,
  );
  return () => {
    let seq = Number(last.first()?.['seq'] ?? 0);
    return (given) => {
      seq += 1;
      const cause = given.cause === null ? null : redact(given.cause);
      const entry = { ...given, seq, data: redact(given.data), cause };
      const { taskId, attempt, type, at, data } = entry;
      const previous = String(lastHash.first(taskId)?.['last_hash'] ?? '');
      const hash = hashOfEntry(previous, entry);
      add.run(seq, taskId, attempt, type, at, data, cause, previous, hash);
      keepHash.run(taskId, hash);
      return entry;
    };
  };
};
