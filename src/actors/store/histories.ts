import type { Database } from './database.ts';

/**
 * Removes the histories of tasks that are over: their journal, steps, requests and earlier agents.
 * What is removed stays removed; the task, its last agent and the sums in the counters stay.
 */
export interface Histories {
  /** Up to 50 tasks after `after` by id, and the id to go on with; null at the end. */
  page(after: string): { readonly taskIds: readonly string[]; readonly next: string | null };
  /**
   * True when the task is complete, failed or cancelled, and nothing of it changed since `before`
   * (epoch ms).
   */
  isOld(taskId: string, before: number): boolean;
  /** Size of the journal's texts. */
  bytesOf(taskId: string): number;
  /**
   * Decides that the history goes, if it still is old. @returns false when the task is at work
   * again
   */
  mark(
    taskId: string,
    before: number,
    removed: { readonly at: number; readonly days: number },
  ): boolean | Promise<boolean>;
  /** Tasks whose marked history is still there, wholly or in part. */
  marked(): readonly string[];
  /**
   * Removes a part of a marked history, in one short transaction. @returns false when nothing is
   * left
   */
  removeSome(taskId: string): boolean | Promise<boolean>;
  /**
   * Gives some free pages of the database back to the file system. @returns false when none is left
   */
  shrink(): boolean | Promise<boolean>;
}

const tasksPerPage = 50;
const removedAtOnce = 100;
const pagesAtOnce = 100;

const overInSql = "('complete', 'failed', 'cancelled')";
/** The agents of a task: `bd-a#1`, and so on. */
const agents = "id > ?1 || '#' and id < ?1 || '$'";

/** `?1` is the task, `?2` the time. A task of bd has no row in `tasks`. */
const isOld = `(select at from journal where task_id = ?1 order by seq desc limit 1) < ?2
  and not exists (select 1 from actors where (id = ?1 or ${agents}) and (pending = 1 or changed_at >= ?2))
  and not exists (select 1 from actors where id = ?1 and json_extract(snapshot, '$.value') not in ${overInSql})
  and not exists (select 1 from tasks where id = ?1 and status not in ${overInSql})`;

const prepareHistories = (db: Database) => ({
  page: db.prepare(
    `select task_id from histories where task_id > ? order by task_id limit ${tasksPerPage}`,
  ),
  isOld: db.prepare(`select 1 as old where ${isOld}`),
  bytes: db.prepare(
    'select sum(length(data) + coalesce(length(cause), 0)) as bytes from journal where task_id = ?',
  ),
  mark: db.prepare(`update histories set base = null, removed_hash = last_hash,
      removed_task_seq = last_task_seq, removed_at = ?3, removed_days = ?4,
      removed_seq = (select max(seq) from journal where task_id = ?1), removing = 1
    where task_id = ?1 and ${isOld}`),
  dropAgents: db.prepare(`delete from actors where ${agents}
    and id <> (select id || '#' || json_extract(snapshot, '$.context.attempt') from actors where id = ?1)`),
  dropSteps: db.prepare('delete from steps where task_id = ?'),
  dropRequests: db.prepare('delete from requests where task_id = ?'),
  marked: db.prepare('select task_id from histories where removing = 1'),
  // A snapshot goes before its base.
  dropEntries:
    db.prepare(`delete from journal where seq in (select seq from journal where task_id = ?1
    and seq <= (select removed_seq from histories where task_id = ?1) order by seq desc limit ${removedAtOnce})`),
  unmark: db.prepare('update histories set removing = null where task_id = ?'),
  freePages: db.prepare('pragma freelist_count'),
  shrink: db.prepare(`pragma incremental_vacuum(${pagesAtOnce})`),
});

export const createHistories = (db: Database): Histories => {
  const sql = prepareHistories(db);
  const freePages = (): number => Number(sql.freePages.first()?.['freelist_count']);
  return {
    page: (after) => {
      const taskIds = sql.page.all(after).map(({ task_id }) => String(task_id));
      return { taskIds, next: taskIds.length < tasksPerPage ? null : (taskIds.at(-1) ?? null) };
    },
    isOld: (taskId, before) => sql.isOld.first(taskId, before) !== null,
    bytesOf: (taskId) => Number(sql.bytes.first(taskId)?.['bytes'] ?? 0),
    mark: (taskId, before, { at, days }) =>
      db.write(() => {
        if (sql.mark.run(taskId, before, at, days).changes === 0) return false;
        for (const drop of [sql.dropAgents, sql.dropSteps, sql.dropRequests]) drop.run(taskId);
        return true;
      }),
    marked: () => sql.marked.all().map(({ task_id }) => String(task_id)),
    removeSome: (taskId) =>
      db.write(() => {
        if (sql.dropEntries.run(taskId).changes > 0) return true;
        sql.unmark.run(taskId);
        return false;
      }),
    // A database of version 2.1 gives nothing back: it fills its free pages again.
    shrink: () => {
      if (freePages() === 0) return false;
      return db.write(() => {
        const before = freePages();
        sql.shrink.all();
        return freePages() < before;
      });
    },
  };
};
