import type { KeptEntry } from './port.ts';
import type { Database, Row, Work } from './rows/rows.ts';
import { hashOfEntry, keptEntryOf, rowsPerRead } from './rows/stored-entry.ts';

/** The last entry of a task that was checked. */
export interface ChainEnd {
  /** Null while no entry had one: those of version 2.1. */
  readonly hash: string | null;
  readonly taskSeq: number;
}

const changedEntry = 'was changed after it was written';
const added = 'was added to the journal by another program';
const moved = 'does not follow the entry before it: entries were removed, added or swapped';
const misnumbered = 'has another number in its task than it was written with';

const gapBefore = (first: number, last: number): string => {
  const missing =
    first === last
      ? `entry ${first} of the task is missing`
      : `entries ${first} to ${last} of the task are missing`;
  return `does not follow the entry before it: ${missing}`;
};

const hashFault = (entry: KeptEntry, { hash: end }: ChainEnd): string | null => {
  if (entry.hash === null) return end === null ? null : added;
  const previous = entry.previous ?? '';
  if (hashOfEntry(previous, entry) !== entry.hash) return changedEntry;
  return previous === (end ?? '') ? null : moved;
};

/**
 * Says what is wrong with the next entry of a task, to follow its name; null: nothing. A journal of an
 * earlier version that is only read has no numbers.
 */
export const faultInChain = (
  entry: KeptEntry,
  end: ChainEnd,
  isNumbered: boolean,
): string | null => {
  const fault = hashFault(entry, end);
  if ((fault !== null && fault !== moved) || !isNumbered) return fault;
  const next = end.taskSeq + 1;
  if (entry.taskSeq > next && (fault === moved || entry.hash === null))
    return gapBefore(next, entry.taskSeq - 1);
  return fault ?? (entry.taskSeq === next ? null : misnumbered);
};

/** `fault`: of this entry, so that the entries after it have none by it. */
export const endAfter = (entry: KeptEntry, end: ChainEnd, fault: string | null): ChainEnd =>
  fault === added
    ? end
    : {
        hash: entry.hash ?? end.hash,
        taskSeq: fault === misnumbered ? end.taskSeq + 1 : entry.taskSeq,
      };

interface JournalFault {
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

const endIsMissing = 'is not the last entry that was written: later ones were removed';

/**
 * Finds entries that are not as they were written. It reads one task at a time, so a server may
 * write meanwhile.
 */
export const checkJournal = async (db: Database): Promise<JournalCheck> => {
  if (!(await db.ask(db.has('histories', 'task_id')))) {
    const counts = await db.ask(
      db
        .prepare('select count(*) as entries, count(distinct task_id) as tasks from journal')
        .first(),
    );
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

  const checkTask = function* (taskId: string): Work<void> {
    const kept = yield* history.first(taskId);
    // What is being removed may be gone in part.
    let seq = Number(kept?.['removed_seq'] ?? 0);
    let end: ChainEnd = {
      hash: String(kept?.['removed_hash'] ?? '') || null,
      taskSeq: Number(kept?.['removed_task_seq'] ?? 0),
    };
    const checkRow = (row: Row): void => {
      const entry = keptEntryOf(row);
      seq = entry.seq;
      entries += 1;
      if (entry.hash === null) withoutHash += 1;
      const problem = faultInChain(entry, end, row['task_seq'] !== undefined);
      if (problem !== null) faults.push({ taskId, seq, problem });
      end = endAfter(entry, end, problem);
    };
    for (
      let rows = yield* read.all(taskId, seq, rowsPerRead);
      rows.length > 0;
      rows = yield* read.all(taskId, seq, rowsPerRead)
    )
      for (const row of rows) checkRow(row);
    const last = yield* history.first(taskId);
    const isShort = end.hash === null && end.taskSeq < Number(last?.['last_task_seq'] ?? 0);
    if ((end.hash ?? '') !== String(last?.['last_hash'] ?? '') || isShort)
      faults.push({ taskId, seq, problem: endIsMissing });
  };
  const all = db.prepare('select task_id from journal union select task_id from histories').all();
  const tasks = await db.ask(all);
  for (const { task_id } of tasks) await db.read(() => checkTask(String(task_id)));
  return { tasks: tasks.length, entries, withoutHash, faults };
};
