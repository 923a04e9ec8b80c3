import { isDeepStrictEqual } from 'node:util';
import { statusInTracker } from '../../machines/tracked-task.ts';
import type { Answer } from '../store/port.ts';
import type { Database, Row, Work } from '../store/rows/rows.ts';
import { blockers, type Issue, type IssueTable, isDone, isoOrEpoch, shownStatus } from './issue.ts';
import { issueOf, lineOf } from './issue-line.ts';

import {
  columnText,
  createTaskReads,
  prepareTaskStatements,
  type StoredTaskReads,
  type TaskStatements,
} from './task-reads.ts';

/** Inside `Database.write`. Where the row of the task before is given, nothing is read. */
interface TaskWrites {
  row(id: string): Work<Row | null>;
  rows(ids: readonly string[]): Work<readonly Row[]>;
  /** Adds or changes a task that the file does not have like this yet. */
  put(issue: Issue): Work<void>;
  putOver(before: Row | null, issue: Issue): Work<void>;
  /** Takes a task as the file has it: its line there is `base`, and `line` what it is now. */
  putMerged(
    before: Row | null,
    issue: Issue,
    lines: { readonly line: string; readonly base: string },
  ): Work<void>;
  remove(id: string, before: Row | null): Work<void>;
  /**
   * Adds a task of a file that is new to the tables; `countBlockers` follows when all are there.
   */
  add(issue: Issue, line: string): Work<void>;
  countBlockers(): Work<void>;
}

const taskColumns = (issue: Issue) => ({
  // Whatever is deferred is queued when its time has come, which writes nothing.
  status: statusInTracker({
    status: shownStatus(issue, Number.POSITIVE_INFINITY),
    labels: issue.labels ?? [],
  }),
  done: isDone(issue.status) ? 1 : 0,
});

const blockersBefore = (row: Row | null): readonly string[] =>
  row === null ? [] : blockers(issueOf(columnText(row, 'line')));

const createTaskWrites = (sql: TaskStatements, { now }: Pick<Database, 'now'>): TaskWrites => {
  /** A line that somebody wrote by hand may not say it. */
  const createdAtOf = function* (issue: Issue, before: Row | null): Work<string> {
    const said = issue.created_at ?? before?.['created_at'] ?? issue.updated_at;
    return said === undefined ? new Date(yield* now()).toISOString() : isoOrEpoch(String(said));
  };
  const saveDependencies = function* (before: Row | null, issue: Issue): Work<void> {
    const ids = blockers(issue);
    if (isDeepStrictEqual(blockersBefore(before), ids)) return;
    yield* sql.undepend.send(issue.id);
    for (const id of ids) yield* sql.depend.send(issue.id, id);
    yield* sql.recount.send(issue.id);
  };

  const save = function* (
    issue: Issue,
    line: string,
    base: string | null,
    before: Row | null,
  ): Work<void> {
    yield* sql.nextRevision.send();
    const { status, done } = taskColumns(issue);
    const createdAt = yield* createdAtOf(issue, before);
    if (before === null) yield* sql.insert.send(issue.id, line, base, status, done, createdAt);
    else yield* sql.update.send(line, base, status, done, createdAt, issue.id);
    yield* saveDependencies(before, issue);
    if (Number(before?.['done'] ?? 0) !== done) yield* sql.recountDependents.send(issue.id);
  };
  const putOver: TaskWrites['putOver'] = function* (before, issue) {
    const line = lineOf(issue, before === null ? null : columnText(before, 'line'));
    const base = before === null ? '' : (before['base'] ?? columnText(before, 'line'));
    yield* save(issue, line, base === line ? null : String(base), before);
  };

  return {
    row: (id) => sql.row.first(id),
    rows: sql.rows,
    *put(issue) {
      yield* putOver(yield* sql.row.first(issue.id), issue);
    },
    putOver,
    *putMerged(before, issue, { line, base }) {
      yield* save(issue, line, line === base ? null : base, before);
    },
    *add(issue, line) {
      const { status, done } = taskColumns(issue);
      const createdAt = yield* createdAtOf(issue, null);
      yield* sql.insertFirst.run(issue.id, line, status, done, createdAt);
      for (const id of blockers(issue)) yield* sql.depend.run(issue.id, id);
    },
    *countBlockers() {
      yield* sql.recountAll.run();
    },
    *remove(id, before) {
      if (before === null) return;
      yield* sql.nextRevision.send();
      yield* sql.undepend.send(id);
      yield* sql.remove.send(id);
      if (Number(before['done']) === 1) yield* sql.recountDependents.send(id);
    },
  };
};

interface ChangeMark {
  /**
   * `looked`: the revision up to which a server has looked at the changes; 0 at first. Kept for the
   * next server. `isAny`: a task changed after the mark; null: after `looked`. One statement, since
   * every server asks all the time.
   */
  news(mark: number | null): Work<{ readonly looked: number; readonly isAny: boolean }>;
  lookedAt(revision: number): Answer<void>;
}

/** The tasks of a project without bd. */
export type TaskTable = IssueTable & StoredTaskReads & TaskWrites & ChangeMark;

export const createTaskTable = (db: Database): TaskTable => {
  const sql = prepareTaskStatements(db);
  return {
    ...createTaskReads(sql, db),
    ...createTaskWrites(sql, db),
    *get(id) {
      const row = yield* sql.get.first(id);
      return row === null ? undefined : issueOf(columnText(row, 'line'));
    },
    *has(id) {
      return (yield* sql.get.first(id)) !== null;
    },
    *newest() {
      const rows = yield* sql.newest.all();
      return { size: Number(rows[0]?.['position'] ?? 0), ids: rows.map(({ id }) => String(id)) };
    },
    *news(mark) {
      const row = yield* sql.news.first(mark ?? -1);
      return { looked: Number(row?.['looked'] ?? 0), isAny: Number(row?.['changed']) === 1 };
    },
    lookedAt: (revision) =>
      db.write(function* () {
        yield* sql.look.run(String(revision));
      }),
  };
};
