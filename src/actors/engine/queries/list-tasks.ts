import { ServiceError } from '../../../machines/errors.ts';
import { isForPerson } from '../../../machines/for-person.ts';
import type { TaskId } from '../../../machines/task.ts';
import {
  type PageOrder,
  type PageRequest,
  statusInTracker,
  type TrackedTask,
} from '../../../machines/tracked-task.ts';
import type { WorkflowSnapshot } from '../../../machines/workflow/workflow-machine.ts';
import { persistedSnapshot, readEach } from '../../journal/snapshots.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { ActorReads } from '../../store/port.ts';
import type { TrackerReads } from '../../tracker/port.ts';
import type { WorkReads } from '../../workspace/worktrees/work-view.ts';
import { withPullRequests } from '../publishing/pull-request-view.ts';
import { withWork } from './task-usage.ts';

/** The tasks for which workflows wait for a person now. */
const readPersonsTasks = async (
  store: Pick<ActorReads, 'openHosted'>,
  tracker: Pick<TrackerReads, 'findMany'>,
): Promise<readonly TrackedTask[]> => {
  const ids = readEach(await store.openHosted('workflow'), (saved) => {
    const { context }: Pick<WorkflowSnapshot, 'context'> = persistedSnapshot(saved);
    const isNow = ({ phase, round }: (typeof context.tasks)[number]): boolean =>
      phase === context.phase && round === context.round;
    return context.tasks.filter(isNow).map(({ taskId }) => taskId);
  }).flat();
  const found = ids.length === 0 ? [] : await tracker.findMany(ids);
  return found.filter(
    (task) => task.ready && isForPerson(task.labels) && statusInTracker(task) === 'queued',
  );
};

export interface ListRequest {
  /** A beginning or an end of ids; then the tasks are sorted by id, on one page. */
  readonly id?: string;
  readonly status?: string;
  readonly role?: string;
  readonly label?: string;
  /** By the time of creation; default: oldest first. */
  readonly order?: PageOrder;
  readonly limit?: number;
  /** Id of the last task of the previous page. */
  readonly cursor?: string;
}

export interface TaskPage {
  readonly tasks: readonly TaskView[];
  readonly next_cursor?: string;
  /** Number of tasks on all pages: on the first of `newest`, without `role` and `label`. */
  readonly total?: number;
  readonly note?: string;
}

interface ListPorts {
  readonly tracker: TrackerReads;
  /** Null in a project without runs. */
  readonly store: Pick<ActorReads, 'tasks' | 'openHosted' | 'actors'> | null;
  readonly viewOf: (tracked: TrackedTask) => Promise<TaskView>;
  readonly workOf: WorkReads;
}

const listedAtOnce = 1_000;

const byCreation = (one: TrackedTask, other: TrackedTask): number => {
  const [first, second] = [`${one.createdAt} ${one.id}`, `${other.createdAt} ${other.id}`];
  return first < second ? -1 : first > second ? 1 : 0;
};
const comparisons: Readonly<Record<PageOrder, typeof byCreation>> = {
  oldest: byCreation,
  newest: (one, other) => byCreation(other, one),
};

/** @throws invalid_params when the cursor names no task */
const taskAtCursor = async (
  { tracker }: ListPorts,
  cursor: string | undefined,
): Promise<TrackedTask | null> => {
  if (cursor === undefined) return null;
  const found = await tracker.find(cursor as TaskId);
  if (found !== null) return found;
  const problem = 'names no task of this project; start again without it';
  throw new ServiceError('invalid_params', { fields: [{ path: 'cursor', problem }] });
};

/**
 * A page of tasks that a server works on: they may have another status than the tracker knows, and are
 * looked at one by one.
 */
const pageAtWork = async (
  { tracker, store }: ListPorts,
  request: PageRequest,
): Promise<readonly TrackedTask[]> => {
  const { status } = request;
  if (store === null || status === undefined) return [];
  return tracker.pageAtWork({ ...request, status }, async () =>
    (await store.tasks('pending')).map(({ taskId }) => taskId as TaskId),
  );
};

/** Null when the tracker alone cannot say it. */
const totalOf = async (
  { tracker }: ListPorts,
  { status, role, label, cursor, order }: ListRequest,
): Promise<number | null> =>
  order !== 'newest' ||
  role !== undefined ||
  label !== undefined ||
  cursor !== undefined ||
  status === active
    ? null
    : tracker.count(status === undefined ? {} : { status, unblocked: status === 'queued' });

/** Started, here or elsewhere, and what waits for a slot, a next attempt, or a person. */
const active = 'active';

const hasStatus = ({ status, ready }: TaskView, wanted: string): boolean => {
  if (wanted === active) return status === 'started' || status === 'queued';
  return status === wanted && (wanted !== 'queued' || ready);
};

const filterOf =
  ({ status, role, label }: ListRequest) =>
  (view: TaskView): boolean =>
    (status === undefined || hasStatus(view, status)) &&
    (role === undefined || view.role === role) &&
    (label === undefined || view.labels.includes(label));

/** Pages of the tracker until enough tasks are found, or all are looked at. */
const findTasks = async (ports: ListPorts, request: ListRequest, most: number) => {
  const { tracker, viewOf } = ports;
  const { role, label, order = 'oldest', cursor } = request;
  const status = request.status === active ? 'started' : request.status;
  const compare = comparisons[order];
  const isWanted = filterOf(request);
  const found: TaskView[] = [];
  let place = await taskAtCursor(ports, cursor);
  const persons =
    request.status === active && ports.store !== null
      ? await readPersonsTasks(ports.store, tracker)
      : [];

  for (let isLast = false; !isLast && found.length < most; ) {
    // Few of a page may have the role or the label.
    const size = role === undefined && label === undefined ? most - found.length : listedAtOnce;
    const page: PageRequest = {
      ...(status === undefined ? {} : { status, unblocked: status === 'queued' }),
      after: place ?? undefined,
      order,
      limit: size,
    };
    const lists = await Promise.all([tracker.page(page), pageAtWork(ports, page)]);
    const ends = lists.flatMap((list) => (list.length < size ? [] : list.slice(-1)));
    const end = ends.toSorted(compare)[0] ?? null;
    isLast = end === null;
    const more = persons.filter((task) => place === null || compare(task, place) > 0);
    const all = [...lists.flat(), ...more].filter(
      (task) => end === null || compare(task, end) <= 0,
    );
    const tasks = [...new Map(all.map((task) => [task.id, task])).values()];
    const views = await Promise.all(tasks.sort(compare).map(viewOf));
    found.push(...views.filter(isWanted));
    place = end;
  }
  return found;
};

/** Says of complete tasks whether their work is merged, and how their pull requests stand. */
const withWorks = async (
  { workOf, store }: ListPorts,
  views: readonly TaskView[],
): Promise<readonly TaskView[]> => {
  const seen = views.map((view) => (view.status === 'complete' ? withWork(workOf, view) : view));
  return withPullRequests(store, await Promise.all(seen));
};

/**
 * A page of tasks in the order of their creation; of `queued` those whose dependencies are
 * complete.
 */
export const listTasks = async (ports: ListPorts, request: ListRequest): Promise<TaskPage> => {
  const { limit = listedAtOnce, id } = request;
  if (id !== undefined) {
    const found = await ports.tracker.matching(id, limit);
    const views = await Promise.all(found.map(ports.viewOf));
    return { tasks: await withWorks(ports, views.filter(filterOf(request))) };
  }
  const [total, found] = await Promise.all([
    totalOf(ports, request),
    findTasks(ports, request, limit + 1),
  ]);
  const tasks = found.slice(0, limit);
  const last = tasks.at(-1);
  const note = await ports.tracker.unreadable();
  return {
    tasks: await withWorks(ports, tasks),
    ...(found.length > limit && last !== undefined ? { next_cursor: last.task_id } : {}),
    total: total ?? undefined,
    note: note ?? undefined,
  };
};
