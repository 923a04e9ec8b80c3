import type { TaskId } from '../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import type { Database, Row } from '../store/database.ts';
import { blockers, type Issue, type IssueTable, isDone, isoOrEpoch, trackedFrom } from './issue.ts';
import { issueOf } from './issue-line.ts';

export interface PageRequest {
  /** Our status (CONTRACT 2), or a status of the tracker that is none of ours; absent: all tasks. */
  readonly status?: string;
  /** Only tasks whose dependencies are complete. */
  readonly unblocked?: boolean;
  /** The last task of the page before. */
  readonly after?: { readonly createdAt: string; readonly id: string };
  readonly limit: number;
}

export interface StoredTask {
  readonly line: string;
  /** The line that the file held last; empty when it never held the task. */
  readonly base: string;
  /** True when it changed here since the file was written. */
  readonly isAhead: boolean;
  /** Rises with each change of the task, and when it becomes ready or blocked. */
  readonly revision: number;
}

/** The tasks of a project without bd. Writes belong into `Database.write`. */
export interface TaskTable extends IssueTable {
  /** Number of tasks, without deleted ones. */
  count(): number;
  tracked(id: string): TrackedTask | null;
  /** A task, deleted or not, with all that its row says of it. */
  stored(id: string): StoredTask | null;
  /** Tasks in the order of their creation. */
  page(request: PageRequest): readonly TrackedTask[];
  /** Tasks that changed after a revision, in that order, about `limit`; and the revision up to which these are. */
  changedSince(revision: number, limit: number): { readonly tasks: readonly TrackedTask[]; readonly revision: number };
  /** The revision up to which a server has looked at the changes; 0 at first. Kept for the next server. */
  lookedUpTo(): number;
  lookedAt(revision: number): void;
  /** Adds or changes a task that the file does not have like this yet. */
  put(issue: Issue): void;
  /** Takes a task as the file has it: its line there is `base`, and `line` what it is now. */
  putMerged(issue: Issue, lines: { readonly line: string; readonly base: string }): void;
  remove(id: string): void;
  /** Adds a task of a file that is new to the tables; `countBlockers` follows when all are there. */
  add(issue: Issue, line: string): void;
  countBlockers(): void;
}

const text = (row: Row, column: string): string => String(row[column] ?? '');

const prepare = (db: Database) => ({
  get: db.prepare('select line from tasks where id = ?'),
  row: db.prepare('select * from tasks where id = ?'),
  size: db.prepare('select coalesce(max(position), 0) as size from tasks'),
  count: db.prepare("select count(*) as count from tasks where status <> 'tombstone'"),
  unmet: db.prepare(
    `select depends_on from dependencies left join tasks on tasks.id = depends_on
     where task_id = ? and coalesce(tasks.done, 0) = 0`,
  ),
  dependsOn: db.prepare('select depends_on from dependencies where task_id = ?'),
  undepend: db.prepare('delete from dependencies where task_id = ?'),
  depend: db.prepare('insert or ignore into dependencies (task_id, depends_on) values (?, ?)'),
  insert: db.prepare(
    `insert into tasks (id, line, base, status, done, created_at, unmet, revision) values (?, ?, ?, ?, ?, ?, 0, ?)`,
  ),
  update: db.prepare(
    'update tasks set line = ?, base = ?, status = ?, done = ?, created_at = ?, revision = ? where id = ?',
  ),
  recount: db.prepare(
    `update tasks set unmet = (select count(*) from dependencies left join tasks as blocker on blocker.id = depends_on
       where task_id = tasks.id and coalesce(blocker.done, 0) = 0) where id = ?`,
  ),
  recountDependents: db.prepare(
    `update tasks set unmet = (select count(*) from dependencies left join tasks as blocker on blocker.id = depends_on
       where task_id = tasks.id and coalesce(blocker.done, 0) = 0), revision = ?
     where id in (select task_id from dependencies where depends_on = ?)`,
  ),
  recountAll: db.prepare(
    `update tasks set unmet = (select count(*) from dependencies left join tasks as blocker on blocker.id = depends_on
       where task_id = tasks.id and coalesce(blocker.done, 0) = 0) where id in (select task_id from dependencies)`,
  ),
  remove: db.prepare('delete from tasks where id = ?'),
  nextRevision: db.prepare(
    `insert into ledger (key, value) values ('revision', '1')
     on conflict (key) do update set value = cast(value as integer) + 1 returning cast(value as integer) as revision`,
  ),
  looked: db.prepare("select value from ledger where key = 'looked'"),
  look: db.prepare(
    "insert into ledger (key, value) values ('looked', ?) on conflict (key) do update set value = excluded.value",
  ),
  changed: db.prepare("select * from tasks where revision > ? and status <> 'tombstone' order by revision limit ?"),
  atRevision: db.prepare("select * from tasks where revision = ? and status <> 'tombstone'"),
  first: db.prepare("select * from tasks where status <> 'tombstone' order by created_at, id limit ?"),
  next: db.prepare(
    `select * from tasks where status <> 'tombstone' and (created_at, id) > (?, ?) order by created_at, id limit ?`,
  ),
  firstOf: db.prepare(
    'select * from tasks where status = ? and (unmet > 0) = ? and (created_at, id) > (?, ?) order by created_at, id limit ?',
  ),
});

export const createTaskTable = (db: Database): TaskTable => {
  const sql = prepare(db);

  const trackedOf = (row: Row): TrackedTask => {
    const unmet =
      Number(row['unmet']) === 0
        ? []
        : sql.unmet.all(text(row, 'id')).map((each) => text(each, 'depends_on') as TaskId);
    return trackedFrom(issueOf(text(row, 'line')), unmet);
  };

  const saveDependencies = (issue: Issue): void => {
    const ids = blockers(issue);
    const before = new Set(sql.dependsOn.all(issue.id).map((row) => text(row, 'depends_on')));
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

  const pageOf = (
    status: string,
    blocked: 0 | 1,
    { createdAt, id }: { createdAt: string; id: string },
    limit: number,
  ) => sql.firstOf.all(status, blocked, createdAt, id, limit);

  const rowsOf = ({ status, unblocked = false, after, limit }: PageRequest): readonly Row[] => {
    if (status === undefined)
      return after === undefined ? sql.first.all(limit) : sql.next.all(after.createdAt, after.id, limit);
    const from = after ?? { createdAt: '', id: '' };
    const open = pageOf(status, 0, from, limit);
    if (unblocked) return open;
    return [...open, ...pageOf(status, 1, from, limit)].sort(inOrder).slice(0, limit);
  };

  return {
    get: (id) => {
      const row = sql.get.first(id);
      return row === null ? undefined : issueOf(text(row, 'line'));
    },
    has: (id) => sql.get.first(id) !== null,
    get size() {
      return Number(sql.size.first()?.['size']);
    },
    count: () => Number(sql.count.first()?.['count']),
    tracked: (id) => {
      const row = sql.row.first(id);
      return row === null || row['status'] === 'tombstone' ? null : trackedOf(row);
    },
    stored: (id) => {
      const row = sql.row.first(id);
      if (row === null) return null;
      const line = text(row, 'line');
      const isAhead = row['base'] !== null;
      return { line, base: isAhead ? text(row, 'base') : line, isAhead, revision: Number(row['revision']) };
    },
    page: (request) => rowsOf(request).map(trackedOf),
    changedSince: (revision, limit) =>
      db.read(() => {
        const rows = sql.changed.all(revision, limit);
        const last = rows.at(-1)?.['revision'] ?? revision;
        // A change and the tasks that it unblocks have one revision.
        const ids = new Set(rows.map(({ id }) => id));
        const rest = rows.length < limit ? [] : sql.atRevision.all(last).filter(({ id }) => !ids.has(id ?? null));
        return { tasks: [...rows, ...rest].map(trackedOf), revision: Number(last) };
      }),
    lookedUpTo: () => Number(sql.looked.first()?.['value'] ?? 0),
    lookedAt: (revision) => db.write(() => void sql.look.run(String(revision))),
    put: (issue) => {
      const before = sql.row.first(issue.id);
      const line = JSON.stringify(issue);
      const base = before === null ? '' : (before['base'] ?? text(before, 'line'));
      save(issue, line, base === line ? null : String(base), before);
    },
    putMerged: (issue, { line, base }) => save(issue, line, line === base ? null : base, sql.row.first(issue.id)),
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

const columnsOf = (issue: Issue) => ({
  status: statusInTracker({ status: issue.status, labels: issue.labels ?? [] }),
  done: isDone(issue.status) ? 1 : 0,
  createdAt: isoOrEpoch(issue.created_at),
});

const inOrder = (one: Row, other: Row): number => {
  const [a, b] = [`${one['created_at']} ${one['id']}`, `${other['created_at']} ${other['id']}`];
  return a < b ? -1 : a > b ? 1 : 0;
};
