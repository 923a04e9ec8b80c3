import { statusInTracker } from '../../machines/tracked-task.ts';
import type { Row } from '../store/database.ts';
import { blockers, type Issue, isDone, isoOrEpoch } from './issue.ts';
import { columnText, type TaskStatements } from './task-statements.ts';

/** To be called inside `Database.write`. */
export interface TaskWrites {
  /** Adds or changes a task that the file does not have like this yet. */
  put(issue: Issue): void;
  /** Takes a task as the file has it: its line there is `base`, and `line` what it is now. */
  putMerged(issue: Issue, lines: { readonly line: string; readonly base: string }): void;
  remove(id: string): void;
  /**
   * Adds a task of a file that is new to the tables; `countBlockers` follows when all are there.
   */
  add(issue: Issue, line: string): void;
  countBlockers(): void;
}

const columnsOf = (issue: Issue) => ({
  status: statusInTracker({ status: issue.status, labels: issue.labels ?? [] }),
  done: isDone(issue.status) ? 1 : 0,
  createdAt: isoOrEpoch(issue.created_at),
});

export const createTaskWrites = (sql: TaskStatements): TaskWrites => {
  const saveDependencies = (issue: Issue): void => {
    const ids = blockers(issue);
    const before = new Set(sql.dependsOn.all(issue.id).map((row) => columnText(row, 'depends_on')));
    if (before.size === ids.length && ids.every((id) => before.has(id))) return;
    sql.undepend.run(issue.id);
    for (const id of ids) sql.depend.run(issue.id, id);
    sql.recount.run(issue.id);
  };

  const nextRevision = (): number => Number(sql.nextRevision.first()?.['revision']);

  const save = (issue: Issue, line: string, base: string | null, before: Row | null): void => {
    const revision = nextRevision();
    const { status, done, createdAt } = columnsOf(issue);
    if (before === null) {
      sql.insert.run(issue.id, line, base, status, done, createdAt, revision);
      sql.recount.run(issue.id);
    } else sql.update.run(line, base, status, done, createdAt, revision, issue.id);
    saveDependencies(issue);
    if (Number(before?.['done'] ?? 0) !== done) sql.recountDependents.run(revision, issue.id);
  };

  return {
    put: (issue) => {
      const before = sql.row.first(issue.id);
      const line = JSON.stringify(issue);
      const base = before === null ? '' : (before['base'] ?? columnText(before, 'line'));
      save(issue, line, base === line ? null : String(base), before);
    },
    putMerged: (issue, { line, base }) =>
      save(issue, line, line === base ? null : base, sql.row.first(issue.id)),
    add: (issue, line) => {
      const { status, done, createdAt } = columnsOf(issue);
      sql.insert.run(issue.id, line, null, status, done, createdAt, 0);
      for (const id of blockers(issue)) sql.depend.run(issue.id, id);
    },
    countBlockers: () => void sql.recountAll.run(),
    remove: (id) => {
      const before = sql.row.first(id);
      if (before === null) return;
      const revision = nextRevision();
      sql.undepend.run(id);
      sql.remove.run(id);
      if (Number(before['done']) === 1) sql.recountDependents.run(revision, id);
    },
  };
};
