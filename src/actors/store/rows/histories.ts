import type { Answer } from '../port.ts';
import { afterAnswer, type Database } from './rows.ts';

/**
 * Removes the histories of tasks that are over: their journal, steps, requests, images and
 * earlier agents. What is removed stays removed; the task, its last agent and the sums in the
 * counters stay.
 */
export interface Histories {
  /** Up to 50 tasks after `after` by id, and the id to go on with; null at the end. */
  page(
    after: string,
  ): Answer<{ readonly taskIds: readonly string[]; readonly next: string | null }>;
  /**
   * True when the task is complete, failed or cancelled, and nothing of it changed since `before`
   * (epoch ms).
   */
  isOld(taskId: string, before: number): Answer<boolean>;
  /** Size of the journal's texts. */
  bytesOf(taskId: string): Answer<number>;
  /**
   * Decides that the history goes, if it still is old. @returns false when the task is at work
   * again
   */
  mark(
    taskId: string,
    before: number,
    removed: { readonly at: number; readonly days: number },
  ): Answer<boolean>;
  /** Tasks whose marked history is still there, wholly or in part. */
  marked(): Answer<readonly string[]>;
  /**
   * Removes a part of a marked history, in one short transaction. @returns false when nothing is
   * left
   */
  removeSome(taskId: string): Answer<boolean>;
  /**
   * Gives some free pages of the database back to the file system. @returns false when none is left
   */
  shrink(): Answer<boolean>;
}

const tasksPerPage = 50;
const removedAtOnce = 100;

const overInSql = "('complete', 'failed', 'cancelled')";
/** The agents of a task: `bd-a#1`, and so on. */
const agents = "id > ?1 || '#' and id < ?1 || '$'";

/** `?1` is the task, `?2` the time. A task of bd has no row in `tasks`. */
const isOld = `(select at from journal where task_id = ?1 order by seq desc limit 1) < ?2
  and not exists (select 1 from actors where (id = ?1 or ${agents}) and (pending = 1 or changed_at >= ?2))
  and not exists (select 1 from actors where id = ?1 and json(snapshot) ->> 'value' not in ${overInSql})
  and not exists (select 1 from tasks where id = ?1 and status not in ${overInSql})
  and not exists (select 1 from actors where id in ('workflow:' || ?1, 'mergeQueue:' || ?1, 'pullRequest:' || ?1, 'source:' || ?1) and (pending = 1 or changed_at >= ?2))`;

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
  dropAgents:
    db.prepare(`delete from actors where id in ('mergeQueue:' || ?1, 'pullRequest:' || ?1, 'source:' || ?1) or (${agents}
    and id <> (select id || '#' || (json(snapshot) -> 'context' ->> 'attempt') from actors where id = ?1))`),
  // `folder` says where work is that nobody has pruned yet.
  dropSteps: db.prepare("delete from steps where task_id = ? and key <> 'folder'"),
  dropRequests: db.prepare('delete from requests where task_id = ?'),
  dropImages: db.prepare('delete from images where task_id = ?'),
  marked: db.prepare('select task_id from histories where removing = 1'),
  // A snapshot goes before its base.
  dropEntries:
    db.prepare(`delete from journal where seq in (select seq from journal where task_id = ?1
    and seq <= (select removed_seq from histories where task_id = ?1) order by seq desc limit ${removedAtOnce})`),
  unmark: db.prepare('update histories set removing = null where task_id = ?'),
});

export const createHistories = (db: Database): Histories => {
  const sql = prepareHistories(db);
  return {
    page: (after) =>
      afterAnswer(db.ask(sql.page.all(after)), (rows) => {
        const taskIds = rows.map(({ task_id }) => String(task_id));
        return { taskIds, next: taskIds.length < tasksPerPage ? null : (taskIds.at(-1) ?? null) };
      }),
    isOld: (taskId, before) =>
      afterAnswer(db.ask(sql.isOld.first(taskId, before)), (row) => row !== null),
    bytesOf: (taskId) =>
      afterAnswer(db.ask(sql.bytes.first(taskId)), (row) => Number(row?.['bytes'] ?? 0)),
    mark: (taskId, before, { at, days }) =>
      db.write(function* () {
        const { changes } = yield* sql.mark.run(taskId, before, at, days);
        if (changes === 0) return false;
        for (const drop of [sql.dropAgents, sql.dropSteps, sql.dropRequests, sql.dropImages])
          yield* drop.run(taskId);
        return true;
      }),
    marked: () =>
      afterAnswer(db.ask(sql.marked.all()), (rows) => rows.map(({ task_id }) => String(task_id))),
    removeSome: (taskId) =>
      db.write(function* () {
        if ((yield* sql.dropEntries.run(taskId)).changes > 0) return true;
        yield* sql.unmark.run(taskId);
        return false;
      }),
    shrink: db.shrink,
  };
};
