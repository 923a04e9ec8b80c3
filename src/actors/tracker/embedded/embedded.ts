import { refusal, ServiceError } from '../../../machines/errors.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { plural } from '../../../machines/plural.ts';
import type { Acceptance } from '../../../machines/task/task-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import { UnsafeFileError } from '../../files/regular-file.ts';
import {
  claimed,
  closed,
  type Edited,
  type Editor,
  isRefusal,
  released,
  removedIssue,
  reopened,
  withComment,
  withDependency,
  withFields,
  withoutDependency,
} from '../../ledger/edits.ts';
import {
  createId,
  createIssue,
  type Issue,
  isListed,
  requireValidFields,
  requireValidTask,
  trackedFrom,
} from '../../ledger/issue.ts';
import { issueOf, lineOf } from '../../ledger/issue-line.ts';

import type { Ledger } from '../../ledger/ledger.ts';

import type { StoredTask } from '../../ledger/task-reads.ts';
import type { TaskTable } from '../../ledger/task-table.ts';
import {
  type Answer,
  DatabaseGoneError,
  DatabaseHeldError,
  DatabaseRefusedError,
  StoreAwayError,
  StoreError,
} from '../../store/port.ts';
import { createRequestRows, type RequestRows } from '../../store/rows/request-rows.ts';
import { known, type Work } from '../../store/rows/rows.ts';
import {
  type Fence,
  type NewTask,
  type PreparedChange,
  refuseUnknown,
  type StatusChange,
  type TrackedTask,
  type Tracker,
  type TrackerChanges,
  type TrackerHealth,
} from '../port.ts';

interface WaitingEdit {
  /** Inside the transaction; what it throws undoes all of it. @returns settles the caller */
  readonly apply: () => Work<() => void>;
  readonly reject: (error: unknown) => void;
}

/** Runs an edit in a transaction with all others that wait at this moment. */
type BatchedWrite = <Result>(edit: () => Work<Result>) => Promise<Result>;

/** Each edit of a batch gets its own answer. */
const createWriteBatch = ({ db, exchange }: Pick<Ledger, 'db' | 'exchange'>): BatchedWrite => {
  let waiting: WaitingEdit[] = [];
  let isUnderway = false;
  const writeAll = async (): Promise<void> => {
    const batch = waiting;
    waiting = [];
    isUnderway = true;
    try {
      const settles = await db.write(function* () {
        const applied: (() => void)[] = [];
        for (const { apply } of batch) applied.push(yield* apply());
        return applied;
      });
      for (const settle of settles) settle();
      exchange.changed();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    isUnderway = false;
    if (waiting.length > 0) void writeAll();
  };
  return (edit) =>
    new Promise((resolve, reject) => {
      const apply = function* (): Work<() => void> {
        try {
          const result = yield* edit();
          return () => resolve(result);
        } catch (error) {
          // The disk failed: nothing of the batch is written.
          if (error instanceof StoreError) throw error;
          return () => reject(error);
        }
      };
      if (waiting.length === 0 && !isUnderway) queueMicrotask(() => void writeAll());
      waiting.push({ apply, reject });
    });
};

/** Each call first imports what others changed in the file. @throws tracker_unavailable */
interface LedgerAccess {
  read<Result>(work: () => Work<Result>): Promise<Result>;
  /** As `read`; rejects when bd keeps the tasks. */
  readOurs<Result>(work: () => Work<Result>): Promise<Result>;
  /** As `readOurs`, in a transaction. */
  write<Result>(edit: () => Work<Result>): Promise<Result>;
  /** For work that is more than one read. */
  use<Result>(work: () => Promise<Result>): Promise<Result>;
}

const remedyOf = (error: unknown): string => {
  if (error instanceof StoreAwayError) return 'check the database and the network to it';
  if (error instanceof DatabaseRefusedError) return 'look into the log of the database';
  return 'check that the disk is not full and that the state folder can be written';
};

/** A fault of the store or of the file; others, such as the refusal of a fence, stay as they are. */
const asUnavailable = (error: unknown): never => {
  const isFault = error instanceof StoreError || (error instanceof Error && 'errno' in error);
  if (!isFault && !(error instanceof UnsafeFileError)) throw error;
  const [detail, remedy] =
    error instanceof UnsafeFileError ||
    error instanceof DatabaseHeldError ||
    error instanceof DatabaseGoneError
      ? [error.problem, error.remedy]
      : [error.message, remedyOf(error)];
  throw new ServiceError('tracker_unavailable', { detail, remedy }, { cause: error });
};

const createLedgerAccess = (ledger: Ledger): LedgerAccess => {
  const batch = createWriteBatch(ledger);
  const use = async <Result>(work: () => Answer<Result>): Promise<Result> => {
    try {
      await ledger.exchange.refresh();
      return await work();
    } catch (error) {
      return asUnavailable(error);
    }
  };
  return {
    use,
    read: (work) => use(() => ledger.db.ask(work())),
    readOurs: (work) =>
      use(() => {
        ledger.requireOurs();
        return ledger.db.ask(work());
      }),
    write: (edit) =>
      use(() => {
        ledger.requireOurs();
        return batch(edit);
      }),
  };
};

/** `unmet`: its blockers that are not done. */
type Edit = (issue: Issue, editor: Editor, unmet: () => Work<readonly TaskId[]>) => Work<Edited>;

interface TaskEditor {
  edit(id: TaskId, change: Edit, fence?: Fence): Promise<Acceptance>;
  changeStatus(change: StatusChange, fence?: Fence): Promise<Acceptance>;
  /** As `changeStatus`, for a transition that commits the edit. */
  prepareStatus(change: StatusChange, fence: Fence): Promise<PreparedChange>;
}

interface TaskEditorOptions {
  /** The assignee of every claim. */
  readonly actor: string;
  /** Epoch ms. */
  readonly clock: () => number;
}

/** The first free moment in which the issue's `updated_at` still rises. */
const touched = (issue: Issue, now: number): string =>
  new Date(Math.max(now, (Date.parse(issue.updated_at ?? '') || 0) + 1)).toISOString();

const createTaskEditor = (
  { actor, clock }: TaskEditorOptions,
  table: TaskTable,
  access: LedgerAccess,
): TaskEditor => {
  /** The task as it is, and as `change` makes it; `next` is null when it stays as it is. */
  const changed = function* (
    id: TaskId,
    change: Edit,
  ): Work<Acceptance & { readonly stored: StoredTask | null; readonly next: Issue | null }> {
    const stored = yield* table.stored(id);
    const issue = stored === null ? null : issueOf(stored.line);
    if (stored === null || issue === null || !isListed(issue))
      return { refusal: refusal('task_not_found', { task_id: id }), stored: null, next: null };
    const now = touched(issue, clock());
    const next = yield* change(issue, { actor, now }, stored.unmet);
    if (isRefusal(next)) return { refusal: next, stored, next: null };
    if (next === null) return { refusal: null, stored, next };
    const { created_at = stored.createdAt } = next;
    return { refusal: null, stored, next: { ...next, created_at, updated_at: now } };
  };
  const editOf = (change: StatusChange): Edit => {
    switch (change.kind) {
      case 'claim':
        return function* (issue, editor, unmet) {
          return claimed(issue, yield* unmet(), editor);
        };
      case 'close':
        return function* (issue, editor, unmet) {
          return closed(issue, yield* unmet(), change.reason, editor);
        };
      case 'release':
        return (issue, editor) => known(released(issue, change.label, editor));
      case 'reopen':
        return (issue) => known(reopened(issue));
    }
  };

  const edit: TaskEditor['edit'] = (id, change, fence) =>
    access.write(function* () {
      fence?.();
      const { refusal, next } = yield* changed(id, change);
      if (next !== null) yield* table.put(next);
      return { refusal };
    });

  return {
    edit,
    changeStatus: (change, fence) => edit(change.id, editOf(change), fence),
    prepareStatus: (change, fence) =>
      access.readOurs(function* () {
        fence();
        const { id } = change;
        const { refusal, stored, next } = yield* changed(id, editOf(change));
        if (next === null || stored === null) return { refusal };
        const toCommit = { id, revision: stored.revision, line: lineOf(next, stored.line) };
        const facts = { createdAt: stored.createdAt, now: clock() };
        return {
          refusal,
          toCommit: {
            edit: toCommit,
            tracked: trackedFrom(next, yield* stored.unmet(), facts),
          },
        };
      }),
  };
};

export interface EmbeddedOptions {
  /** The assignee of every claim. */
  readonly actor?: string;
  /** Epoch ms. */
  readonly clock: () => number;
  /** A whole number from 0 to below `max`. */
  readonly random: (max: number) => number;
}

const changesAtOnce = 500;
const everyTask = Number.MAX_SAFE_INTEGER;

type EmbeddedParts = Required<EmbeddedOptions> & Ledger & { readonly requests: RequestRows };

const requireTracked = function* ({ table }: EmbeddedParts, id: string): Work<TrackedTask> {
  const tracked = yield* table.tracked(id as TaskId);
  if (tracked === null) throw new ServiceError('task_not_found', { task_id: id });
  return tracked;
};

/** Inside a transaction. */
const addTask = function* (
  parts: EmbeddedParts,
  task: NewTask,
  requestId: string | undefined,
): Work<TrackedTask> {
  const { table, actor, clock, random, requests } = parts;
  const first = requestId === undefined ? null : yield* requests.taskOf(requestId);
  if (first !== null) return yield* requireTracked(parts, first);
  const unknown: TaskId[] = [];
  for (const id of new Set(task.dependencies))
    if ((yield* table.tracked(id)) === null) unknown.push(id);
  refuseUnknown(unknown);
  const id = yield* createId(table, random);
  yield* table.put(createIssue(id, task, actor, new Date(clock()).toISOString()));
  if (requestId !== undefined) yield* requests.add(requestId, id);
  return yield* requireTracked(parts, id);
};

const changesSince = async (
  { db, table }: EmbeddedParts,
  mark: number | null,
  done: number | null,
): Promise<TrackerChanges> => {
  const { looked, isAny } = await db.ask(table.news(mark));
  if (done !== null && done > looked) await table.lookedAt(done);
  const from = mark ?? looked;
  if (!isAny) return { tasks: [], mark: from, extent: 'end' };
  const { tasks, revision } = await db.read(() => table.changedSince(from, changesAtOnce));
  return { tasks, mark: revision, extent: tasks.length < changesAtOnce ? 'end' : 'more' };
};

const check = async ({
  db,
  table,
  exchange,
  requireOurs,
}: EmbeddedParts): ReturnType<TrackerHealth['check']> => {
  try {
    requireOurs();
    const { ok, detail } = await db.check();
    if (!ok) return { ok, detail };
    await exchange.refresh();
    const problem = await exchange.problem();
    if (problem !== null) return { ok: false, detail: problem };
    const tasks = `embedded, ${plural(await db.ask(table.count()), 'task')}`;
    const unkept = await exchange.unkept();
    return { ok: true, detail: unkept === null ? tasks : `${tasks}; ${unkept}` };
  } catch (error) {
    return { ok: false, detail: messageOf(error) };
  }
};

/** The tracker of a project without bd: the tables of the store. */
export const createEmbeddedTracker = (options: EmbeddedOptions, ledger: Ledger): Tracker => {
  const { actor = 'agent-server', clock, random } = options;
  const { table, exchange } = ledger;
  const requests = createRequestRows(ledger.db);
  const ports: EmbeddedParts = { actor, clock, random, requests, ...ledger };
  const access = createLedgerAccess(ledger);
  const { read } = access;
  const { edit, changeStatus, prepareStatus } = createTaskEditor(ports, table, access);

  return {
    name: 'embedded',
    actor,
    list: () => read(() => table.page({ limit: everyTask })),
    find: (id) => read(() => table.tracked(id)),
    findMany: (ids) => read(() => table.trackedOf(ids)),
    dependents: (id) => read(() => table.dependents(id)),
    matching: (text, limit) => read(() => table.matching(text, limit)),
    page: (request) => read(() => table.page(request)),
    pageAtWork: (request) => read(() => table.pageAtWork(request)),
    count: (request) => read(() => table.countOf(request)),
    changes: (mark, done) => access.use(() => changesSince(ports, mark, done)),
    create: async (task, requestId) => {
      requireValidTask(task);
      return access.write(() => addTask(ports, task, requestId));
    },
    prepare: (change, { fence }) => prepareStatus(change, fence),
    claim: (id, fence) => changeStatus({ kind: 'claim', id }, fence),
    release: async (id, label, fence) => {
      await changeStatus({ kind: 'release', id, label }, fence);
    },
    close: (id, reason, fence) => changeStatus({ kind: 'close', id, reason }, fence),
    reopen: (id, fence) => changeStatus({ kind: 'reopen', id }, fence),
    addDependency: (dependent, prerequisite) =>
      edit(dependent, (issue, editor) => withDependency(issue, prerequisite, table, editor)),
    removeDependency: (dependent, prerequisite) =>
      edit(dependent, (issue) => known(withoutDependency(issue, prerequisite))),
    edit: async (id, fields) => {
      requireValidFields(fields);
      return edit(id, (issue) => known(withFields(issue, fields)));
    },
    remove: (id) =>
      edit(id, function* (issue, editor) {
        const dependents = yield* table.dependents(id);
        return removedIssue(
          issue,
          dependents.map((task) => task.id),
          editor,
        );
      }),
    note: async (id, text, fence) => {
      await edit(id, (issue, editor) => known(withComment(issue, text, editor)), fence);
    },
    unreadable: exchange.problem,
    check: () => check(ports),
  };
};
