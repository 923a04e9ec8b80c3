import { type Entry, type NewEntry, StoreError } from '../port.ts';
import {
  createRowInsert,
  createRowRead,
  type Database,
  type Row,
  together,
  type Value,
  type Work,
} from './rows.ts';
import { createSnapshotBase, type SnapshotBase, withBase } from './snapshot-data.ts';
import { hashOfEntry, type StoredEntry, storedEntryOf } from './stored-entry.ts';

/** Whole snapshots that are kept, and the length of one. */
const basesAtMost = { count: 256, characters: 16 * 1024 };

/** Entries of rows, each with its whole data. */
export const createEntryReader = (
  db: Database,
): ((rows: readonly Row[]) => Work<readonly Entry[]>) => {
  const dataOf = db.prepare('select data from journal where seq = ?');
  /** Whole snapshots, the latest read last: the next entries of a task need the same one. */
  const recent = new Map<number, string>();
  const keep = (seq: number, data: string): void => {
    recent.delete(seq);
    if (data.length > basesAtMost.characters) return;
    recent.set(seq, data);
    const [oldest] = recent.keys();
    if (recent.size > basesAtMost.count && oldest !== undefined) recent.delete(oldest);
  };
  const baseOf = function* (seq: number): Work<readonly [number, string | null]> {
    const known = recent.get(seq);
    const data = known ?? (yield* dataOf.first(seq))?.['data'] ?? null;
    if (data === null) return [seq, null];
    keep(seq, String(data));
    return [seq, String(data)];
  };
  return function* (rows) {
    const stored = rows.map(storedEntryOf);
    for (const { seq, type, base, data } of stored)
      if (type === 'snapshot' && base === null) keep(seq, data);
    const needed = new Set(stored.flatMap(({ base }) => (base === null ? [] : [base])));
    const bases = new Map(yield* together([...needed].map(baseOf)));
    return stored.map(({ base, ...entry }) => {
      if (base === null) return entry;
      const data = bases.get(base) ?? null;
      if (data === null)
        throw new StoreError(
          `entry ${entry.seq} of the journal needs entry ${base}, which is gone; see agent doctor --journal`,
        );
      return { ...entry, data: withBase(entry.data, data) };
    });
  };
};

/** The end of a task's journal, which its next entry continues. */
interface History {
  hash: string;
  taskSeq: number;
  /** The last whole snapshot. */
  base: { readonly seq: number; readonly data: string } | null;
  /** That snapshot, once another one is compared with it. */
  snapshot: SnapshotBase | null;
}

/** The ends of the journals of some tasks, as a transaction found them. */
type Histories = Map<string, History>;

/**
 * Writes the entries of one transaction. It is the only writer of the journal: no entry is without
 * its hash.
 */
export interface JournalRows {
  /** What `add` goes by, for entries that it may get. */
  open(entries: readonly NewEntry[]): Work<Histories>;
  add(entries: readonly NewEntry[], histories: Histories): Work<readonly Entry[]>;
}

const historyOf = (row: Row | undefined): History => {
  const [base, data] = [row?.['base'] ?? null, row?.['data'] ?? null];
  return {
    hash: String(row?.['hash'] ?? ''),
    taskSeq: Number(row?.['task_seq'] ?? 0),
    base: base === null ? null : { seq: Number(base), data: String(data) },
    snapshot: null,
  };
};

/** A snapshot as it is kept: by what changed since the task's last whole one. */
const shortened = (entry: Entry, history: History): StoredEntry => {
  const { base } = history;
  if (base === null) return { ...entry, base: null };
  history.snapshot ??= createSnapshotBase(base.data);
  const shorter = history.snapshot.shorten(entry.data);
  return shorter === null ? { ...entry, base: null } : { ...entry, data: shorter, base: base.seq };
};

/** The row of an entry, after which its history goes on. */
const rowOf = (history: History, entry: Entry): readonly Value[] => {
  const { seq, taskId, taskSeq, attempt, type, at, cause } = entry;
  const isSnapshot = type === 'snapshot';
  const { data, base } = isSnapshot ? shortened(entry, history) : { data: entry.data, base: null };
  const previous = history.hash;
  history.hash = hashOfEntry(previous, { ...entry, data, base });
  if (isSnapshot && base === null) {
    history.base = { seq, data };
    history.snapshot = null;
  }
  return [seq, taskId, taskSeq, attempt, type, at, data, cause, base, previous, history.hash];
};

export const createJournalRows = (db: Database, redact: (text: string) => string): JournalRows => {
  const endWith = (data: string) =>
    createRowRead(
      db,
      `select task_id, last_hash as hash, last_task_seq as task_seq, base, ${data} as data
       from histories where task_id`,
    );
  const ends = endWith('null');
  const endsWithBase = endWith('(select data from journal where seq = histories.base)');
  const insert = createRowInsert(db, {
    into: 'journal (seq, task_id, task_seq, attempt, type, at, data, cause, base, previous, hash)',
  });
  const keep = createRowInsert(db, {
    into: 'histories (task_id, last_hash, last_task_seq, base)',
    onConflict: `on conflict (task_id) do update set last_hash = excluded.last_hash,
       last_task_seq = excluded.last_task_seq, base = excluded.base`,
  });
  return {
    *open(entries) {
      const taskIds = new Set(entries.map(({ taskId }) => taskId));
      const compared = new Set(
        entries.flatMap(({ type, taskId }) => (type === 'snapshot' ? [taskId] : [])),
      );
      const others = [...taskIds].filter((id) => !compared.has(id));
      const found = (yield* together([endsWithBase([...compared]), ends(others)])).flat();
      const rows = new Map(found.map((row) => [String(row['task_id']), row]));
      return new Map([...taskIds].map((id) => [id, historyOf(rows.get(id))]));
    },
    *add(entries, histories) {
      if (entries.length === 0) return [];
      let last = yield* db.lastSeq();
      const changed: Histories = new Map();
      const added: Entry[] = [];
      const rows: (readonly Value[])[] = [];
      for (const given of entries) {
        const history = histories.get(given.taskId);
        if (history === undefined) throw new Error(`the history of ${given.taskId} was not read`);
        changed.set(given.taskId, history);
        last += 1;
        history.taskSeq += 1;
        const { taskSeq } = history;
        const cause = given.cause === null ? null : redact(given.cause);
        const entry = { ...given, seq: last, taskSeq, data: redact(given.data), cause };
        rows.push(rowOf(history, entry));
        added.push(entry);
      }
      yield* insert(rows);
      yield* keep(
        [...changed].map(([taskId, { hash, taskSeq, base }]) => [
          taskId,
          hash,
          taskSeq,
          base?.seq ?? null,
        ]),
      );
      yield* db.added(last);
      return added;
    },
  };
};
