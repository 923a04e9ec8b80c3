import { ServiceError } from '../../../machines/errors.ts';
import { messageOf } from '../../../machines/message-of.ts';
import { plural } from '../../../machines/plural.ts';
import type { TaskId } from '../../../machines/task.ts';
import {
  removedIssue,
  withComment,
  withDependency,
  withFields,
  withoutDependency,
} from '../../ledger/edits.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import {
  createId,
  createIssue,
  requireValidFields,
  requireValidTask,
} from '../../ledger/new-issue.ts';
import { createRequestRows, type RequestRows } from '../../store/request-rows.ts';
import { known, type Work } from '../../store/rows.ts';
import type { NewTask, TrackedTask, Tracker, TrackerChanges, TrackerHealth } from '../port.ts';
import { refuseUnknown } from '../refuse-unknown.ts';
import { createTaskEditor } from './edit-task.ts';
import { createLedgerAccess } from './ledger-access.ts';

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
