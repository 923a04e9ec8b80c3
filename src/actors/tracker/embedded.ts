import { refusal, ServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import type { TaskId } from '../../machines/task.ts';
import type { Verdict } from '../../machines/task-context.ts';
import { UnsafeFileError } from '../files/regular-file.ts';
import {
  claimed,
  closed,
  type Edited,
  type Editor,
  isRefusal,
  released,
  reopened,
  withComment,
  withDependency,
  withoutDependency,
} from '../ledger/edits.ts';
import { type Issue, isListed, trackedFrom } from '../ledger/issue.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { createId, createIssue, requireValidTask } from '../ledger/new-issue.ts';
import { StoreError } from '../store/port.ts';
import type { Fence, NewTask, StatusChange, TrackedTask, Tracker } from './port.ts';

export interface EmbeddedOptions {
  /** The assignee of every claim. */
  readonly actor?: string;
  /** Epoch ms. */
  readonly clock: () => number;
  /** A whole number from 0 to below `max`. */
  readonly random: (max: number) => number;
}

type Change = (issue: Issue, editor: Editor) => Edited;

interface WaitingEdit {
  /** Inside the transaction; what it throws undoes all of it. @returns settles the caller */
  readonly apply: () => () => void;
  readonly reject: (error: unknown) => void;
}

const changesAtOnce = 500;
const everyTask = Number.MAX_SAFE_INTEGER;

/** The first free moment in which the issue's `updated_at` still rises. */
const touched = (issue: Issue, now: number): string =>
  new Date(Math.max(now, (Date.parse(issue.updated_at) || 0) + 1)).toISOString();

/** A fault of the disk or of the file; others, such as the refusal of a fence, stay as they are. */
const asUnavailable = (error: unknown): never => {
  const isDisk = error instanceof StoreError || (error instanceof Error && 'errno' in error);
  if (!isDisk && !(error instanceof UnsafeFileError)) throw error;
  const [detail, remedy] =
    error instanceof UnsafeFileError
      ? [error.problem, error.remedy]
      : [error.message, 'check that the disk is not full and that the state folder can be written'];
  throw new ServiceError('tracker_unavailable', { detail, remedy }, { cause: error });
};

/** All writes that wait at this moment go into one transaction; each gets its own answer. */
const createBatch = ({ db, exchange }: Ledger) => {
  let waiting: WaitingEdit[] = [];
  const writeAll = (): void => {
    const batch = waiting;
    waiting = [];
    try {
      const settles = db.write(() => batch.map(({ apply }) => apply()));
      for (const settle of settles) settle();
      exchange.changed();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  return <Result>(edit: () => Result): Promise<Result> =>
    new Promise((resolve, reject) => {
      const apply = (): (() => void) => {
        try {
          const result = edit();
          return () => resolve(result);
        } catch (error) {
          // The disk failed: nothing of the batch is written.
          if (error instanceof StoreError) throw error;
          return () => reject(error);
        }
      };
      if (waiting.length === 0) queueMicrotask(writeAll);
      waiting.push({ apply, reject });
    });
};

/** The tracker of a project without bd: the tables of the store. */
export const createEmbeddedTracker = (options: EmbeddedOptions, ledger: Ledger): Tracker => {
  const { actor = 'agent-server', clock, random } = options;
  const { table, exchange } = ledger;
  const batch = createBatch(ledger);

  const fresh = async <Result>(work: () => Result | Promise<Result>): Promise<Result> => {
    try {
      await exchange.refresh();
      return await work();
    } catch (error) {
      return asUnavailable(error);
    }
  };
  const write = <Result>(edit: () => Result): Promise<Result> =>
    fresh(() => {
      ledger.requireOurs();
      return batch(edit);
    });

  const unmetOf = (id: string): readonly TaskId[] => table.tracked(id)?.unmet ?? [];
  /** The task as `change` makes it; null when it stays as it is. */
  const changed = (id: TaskId, change: Change): Verdict & { readonly next: Issue | null } => {
    const issue = table.get(id);
    if (issue === undefined || !isListed(issue))
      return { refusal: refusal('task_not_found', { task_id: id }), next: null };
    const now = touched(issue, clock());
    const next = change(issue, { actor, now });
    if (isRefusal(next)) return { refusal: next, next: null };
    return { refusal: null, next: next === null ? null : { ...next, updated_at: now } };
  };
  const edit = (id: TaskId, change: Change, fence?: Fence): Promise<Verdict> =>
    write(() => {
      fence?.();
      const { refusal, next } = changed(id, change);
      if (next !== null) table.put(next);
      return { refusal };
    });
  const editOf = (change: StatusChange): Change => {
    switch (change.kind) {
      case 'claim':
        return (issue, editor) => claimed(issue, unmetOf(issue.id), editor);
      case 'close':
        return (issue, editor) => closed(issue, unmetOf(issue.id), change.reason, editor);
      case 'release':
        return (issue, editor) => released(issue, change.label, editor);
      case 'reopen':
        return reopened;
    }
  };
  const editStatus = (change: StatusChange, fence?: Fence): Promise<Verdict> => edit(change.id, editOf(change), fence);
  const prepare: Tracker['prepare'] = (change, { fence }) =>
    fresh(() => {
      ledger.requireOurs();
      fence();
      const { id } = change;
      const { refusal, next } = changed(id, editOf(change));
      const stored = table.stored(id);
      if (next === null || stored === null) return { refusal };
      const edit = { id, revision: stored.revision, line: JSON.stringify(next) };
      return { refusal, toCommit: { edit, tracked: trackedFrom(next, unmetOf(id)) } };
    });

  const create = (task: NewTask): TrackedTask => {
    for (const id of task.dependencies)
      if (table.tracked(id) === null) throw new ServiceError('task_not_found', { task_id: id });
    const id = createId(table, random);
    table.put(createIssue(id, task, actor, new Date(clock()).toISOString()));
    const created = table.tracked(id);
    if (created === null) throw new Error(`${id} was created and is not there`);
    return created;
  };

  return {
    name: 'embedded',
    actor,
    list: () => fresh(() => table.page({ limit: everyTask })),
    find: (id) => fresh(() => table.tracked(id)),
    findMany: (ids) => fresh(() => ids.flatMap((id) => table.tracked(id) ?? [])),
    page: (request) => fresh(() => table.page(request)),
    changes: (mark) =>
      fresh(() => {
        const looked = table.lookedUpTo();
        if (mark !== null && mark > looked) table.lookedAt(mark);
        const { tasks, revision } = table.changedSince(mark ?? looked, changesAtOnce);
        return { tasks, mark: revision, extent: tasks.length < changesAtOnce ? 'end' : 'more' };
      }),
    create: async (task) => {
      requireValidTask(task);
      return write(() => create(task));
    },
    prepare,
    claim: (id, fence) => editStatus({ kind: 'claim', id }, fence),
    release: async (id, label, fence) => {
      await editStatus({ kind: 'release', id, label }, fence);
    },
    close: (id, reason, fence) => editStatus({ kind: 'close', id, reason }, fence),
    reopen: (id, fence) => editStatus({ kind: 'reopen', id }, fence),
    addDependency: (dependent, prerequisite) =>
      edit(dependent, (issue, editor) => withDependency(issue, prerequisite, table, editor)),
    removeDependency: (dependent, prerequisite) => edit(dependent, (issue) => withoutDependency(issue, prerequisite)),
    note: async (id, text, fence) => {
      await edit(id, (issue, editor) => withComment(issue, text, editor), fence);
    },
    unreadable: async () => exchange.problem(),
    check: async () => {
      try {
        await exchange.refresh();
        ledger.requireOurs();
        const { ok, detail } = ledger.db.check();
        const problem = exchange.problem();
        if (!ok || problem !== null) return { ok: false, detail: problem ?? detail };
        return { ok: true, detail: `embedded, ${table.count()} tasks` };
      } catch (error) {
        return { ok: false, detail: messageOf(error) };
      }
    },
  };
};
