import { type ChainEnd, endAfter, faultInChain } from './chain-faults.ts';
import type { Database, Row, Work } from './rows.ts';
import { keptEntryOf, rowsPerRead } from './stored-entry.ts';

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
