import { ServiceError } from '../../machines/errors.ts';
import type { TaskId } from '../../machines/task.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';
import type { TaskView } from '../journal/task-view.ts';
import type { ActorReads } from '../store/port.ts';
import type { TrackerReads } from '../tracker/port.ts';

export interface ListRequest {
  readonly status?: string;
  readonly limit?: number;
  /** Id of the last task of the previous page. */
  readonly cursor?: string;
}

export interface TaskPage {
  readonly tasks: readonly TaskView[];
  readonly next_cursor?: string;
  readonly note?: string;
}

export interface ListPorts {
  readonly tracker: TrackerReads;
  /** Null in a project without runs. */
  readonly store: Pick<ActorReads, 'tasks'> | null;
  readonly viewOf: (tracked: TrackedTask) => TaskView;
}

const pageSize = 1_000;

const byCreation = (one: TrackedTask, other: TrackedTask): number => {
  const [first, second] = [`${one.createdAt} ${one.id}`, `${other.createdAt} ${other.id}`];
  return first < second ? -1 : first > second ? 1 : 0;
};
const isAfter = (task: TrackedTask, place: TrackedTask | null): boolean =>
  place === null || byCreation(task, place) > 0;

/** @throws invalid_params when the cursor names no task */
const placeOf = async (
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
 * A task that a server works on may have another status than the tracker knows: these are looked at
 * one by one.
 */
const pendingTasks = async ({ tracker, store }: ListPorts): Promise<readonly TrackedTask[]> =>
  tracker.findMany((store?.tasks('pending') ?? []).map(({ taskId }) => taskId as TaskId));

/**
 * A page of tasks in the order of their creation; of `queued` those whose dependencies are
 * complete.
 */
export const listTasks = async (ports: ListPorts, request: ListRequest): Promise<TaskPage> => {
  const { tracker, viewOf } = ports;
  const { status, limit = pageSize, cursor } = request;
  const isQueued = status === 'queued';
  const isWanted = (view: TaskView): boolean =>
    status === undefined || (view.status === status && (!isQueued || view.ready));
  const found: TaskView[] = [];
  let place = await placeOf(ports, cursor);
  // Asked for together with the first page: bd lists all tasks for either.
  const looking = status === undefined ? [] : pendingTasks(ports);

  for (let isLast = false; !isLast && found.length <= limit; ) {
    const size = limit + 1 - found.length;
    const [rows, pending] = await Promise.all([
      tracker.page({
        ...(status === undefined ? {} : { status, unblocked: isQueued }),
        ...(place === null ? {} : { after: place }),
        limit: size,
      }),
      looking,
    ]);
    isLast = rows.length < size;
    const end = isLast ? null : (rows.at(-1) ?? null);
    const more = pending.filter(
      (task) => isAfter(task, place) && (end === null || byCreation(task, end) <= 0),
    );
    const tasks = [...new Map([...rows, ...more].map((task) => [task.id, task])).values()].sort(
      byCreation,
    );
    found.push(...tasks.map(viewOf).filter(isWanted));
    place = end;
  }

  const tasks = found.slice(0, limit);
  const last = tasks.at(-1);
  const note = await tracker.unreadable();
  return {
    tasks,
    ...(found.length > limit && last !== undefined ? { next_cursor: last.task_id } : {}),
    ...(note === null ? {} : { note }),
  };
};
