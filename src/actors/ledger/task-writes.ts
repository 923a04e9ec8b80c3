import { statusInTracker } from '../../machines/tracked-task.ts';
import type { Row, Work } from '../store/rows.ts';
import { blockers, type Issue, isDone, isoOrEpoch } from './issue.ts';
import { columnText, type TaskStatements } from './task-statements.ts';

/** Inside `Database.write`. */
export interface TaskWrites {
  /** Adds or changes a task that the file does not have like this yet. */
  put(issue: Issue): Work<void>;
  /** Takes a task as the file has it: its line there is `base`, and `line` what it is now. */
  putMerged(issue: Issue, lines: { readonly line: string; readonly base: string }): Work<void>;
  remove(id: string): Work<void>;
  /**
   * Adds a task of a file that is new to the tables; `countBlockers` follows when all are there.
   */
  add(issue: Issue, line: string): Work<void>;
  countBlockers(): Work<void>;
}

const taskColumns = (issue: Issue) => ({
  status: statusInTracker({ status: issue.status, labels: issue.labels ?? [] }),
  done: isDone(issue.status) ? 1 : 0,
  createdAt: isoOrEpoch(issue.created_at),
});

export const createTaskWrites = (sql: TaskStatements): TaskWrites => {
  const saveDependencies = function* (issue: Issue): Work<void> {
    const ids = blockers(issue);
    const rows = yield* sql.dependsOn.all(issue.id);
    const before = new Set(rows.map((row) => columnText(row, 'depends_on')));
    if (before.size === ids.length && ids.every((id) => before.has(id))) return;
    yield* sql.undepend.run(issue.id);
    for (const id of ids) yield* sql.depend.run(issue.id, id);
    yield* sql.recount.run(issue.id);
  };

  const nextRevision = function* (): Work<number> {
    return Number((yield* sql.nextRevision.first())?.['revision']);
  };

  const save = function* (
    issue: Issue,
    line: string,
    base: string | null,
    before: Row | null,
  ): Work<void> {
    const revision = yield* nextRevision();
    const { status, done, createdAt } = taskColumns(issue);
    if (before === null) {
      yield* sql.insert.run(issue.id, line, base, status, done, createdAt, revision);
      yield* sql.recount.run(issue.id);
    } else yield* sql.update.run(line, base, status, done, createdAt, revision, issue.id);
    yield* saveDependencies(issue);
    if (Number(before?.['done'] ?? 0) !== done)
      yield* sql.recountDependents.run(revision, issue.id);
  };

  return {
    *put(issue) {
      const before = yield* sql.row.first(issue.id);
      const line = JSON.stringify(issue);
      const base = before === null ? '' : (before['base'] ?? columnText(before, 'line'));
      yield* save(issue, line, base === line ? null : String(base), before);
    },
    *putMerged(issue, { line, base }) {
      const before = yield* sql.row.first(issue.id);
      yield* save(issue, line, line === base ? null : base, before);
    },
    *add(issue, line) {
      const { status, done, createdAt } = taskColumns(issue);
      yield* sql.insert.run(issue.id, line, null, status, done, createdAt, 0);
      for (const id of blockers(issue)) yield* sql.depend.run(issue.id, id);
    },
    *countBlockers() {
      yield* sql.recountAll.run();
    },
    *remove(id) {
      const before = yield* sql.row.first(id);
      if (before === null) return;
      const revision = yield* nextRevision();
      yield* sql.undepend.run(id);
      yield* sql.remove.run(id);
      if (Number(before['done']) === 1) yield* sql.recountDependents.run(revision, id);
    },
  };
};
