import type { Database, Row } from './database.ts';
import { hashOfEntry } from './hash-chain.ts';
import { storedEntryOf } from './stored-entry.ts';

export interface JournalFault {
  readonly taskId: string;
  readonly seq: number;
  readonly problem: string;
}

export interface JournalCheck {
  readonly tasks: number;
  readonly entries: number;
  /** Entries of version 2.1, which have no hash. */
  readonly withoutHash: number;
  readonly faults: readonly JournalFault[];
}

const rowsPerRead = 1_000;

const changed = 'was changed after it was written';
const added = 'was added to the journal by another program';
const moved = 'does not follow the entry before it: entries were removed, added or swapped';
const misnumbered = 'has another number in its task than it was written with';
const endIsMissing = 'is not the last entry that was written: later ones were removed';

const gapBefore = (first: number, last: number): string => {
  const missing =
    first === last
      ? `entry ${first} of the task is missing`
      : `entries ${first} to ${last} of the task are missing`;
  return `does not follow the entry before it: ${missing}`;
};

/** The last entry that was checked of a task. */
interface CheckedEnd {
  hash: string;
  taskSeq: number;
  /** False while the entries are of version 2.1. */
  hasHashes: boolean;
}

const hashProblem = (row: Row, { hash, hasHashes }: CheckedEnd): string | null => {
  if (row['hash'] == null) return hasHashes ? added : null;
  const previous = String(row['previous']);
  if (hashOfEntry(previous, storedEntryOf(row)) !== row['hash']) return changed;
  return previous === hash ? null : moved;
};

const problemOf = (row: Row, end: CheckedEnd): string | null => {
  const problem = hashProblem(row, end);
  const isChecked = problem === null || problem === moved;
  // A journal of an earlier version that is only read has no numbers.
  if (!isChecked || row['task_seq'] === undefined) return problem;
  const { taskSeq } = storedEntryOf(row);
  const next = end.taskSeq + 1;
  if (taskSeq > next && (problem === moved || row['hash'] == null))
    return gapBefore(next, taskSeq - 1);
  return problem ?? (taskSeq === next ? null : misnumbered);
};

/**
 * Finds entries that are not as they were written. It reads one task at a time, so a server may
 * write meanwhile.
 */
export const checkJournal = (db: Database): JournalCheck => {
  const isOlder =
    db.prepare("select 1 from sqlite_schema where name = 'histories'").first() === null;
  if (isOlder) {
    const counts = db
      .prepare('select count(*) as entries, count(distinct task_id) as tasks from journal')
      .first();
    const entries = Number(counts?.['entries']);
    return { tasks: Number(counts?.['tasks']), entries, withoutHash: entries, faults: [] };
  }
  const read = db.prepare(
    'select * from journal where task_id = ? and seq > ? order by seq limit ?',
  );
  const history = db.prepare('select * from histories where task_id = ?');
  const faults: JournalFault[] = [];
  let entries = 0;
  let withoutHash = 0;

  const checkTask = (taskId: string): void => {
    const kept = history.first(taskId);
    // What is being removed may be gone in part.
    let seq = Number(kept?.['removed_seq'] ?? 0);
    const end: CheckedEnd = {
      hash: String(kept?.['removed_hash'] ?? ''),
      taskSeq: Number(kept?.['removed_task_seq'] ?? 0),
      hasHashes: false,
    };
    const checkRow = (row: Row): void => {
      seq = Number(row['seq']);
      entries += 1;
      const problem = problemOf(row, end);
      if (problem !== null) faults.push({ taskId, seq, problem });
      if (row['hash'] == null) withoutHash += 1;
      if (problem === added) return;
      end.taskSeq = problem === misnumbered ? end.taskSeq + 1 : storedEntryOf(row).taskSeq;
      if (row['hash'] == null) return;
      end.hasHashes = true;
      end.hash = String(row['hash']);
    };
    for (
      let rows = read.all(taskId, seq, rowsPerRead);
      rows.length > 0;
      rows = read.all(taskId, seq, rowsPerRead)
    )
      for (const row of rows) checkRow(row);
    const last = history.first(taskId);
    const isShort = !end.hasHashes && end.taskSeq < Number(last?.['last_task_seq'] ?? 0);
    if (end.hash !== String(last?.['last_hash'] ?? '') || isShort)
      faults.push({ taskId, seq, problem: endIsMissing });
  };
  const tasks = db.prepare('select task_id from journal union select task_id from histories').all();
  for (const { task_id } of tasks) db.read(() => checkTask(String(task_id)));
  return { tasks: tasks.length, entries, withoutHash, faults };
};
