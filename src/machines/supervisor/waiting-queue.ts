import type { Role, TaskId } from '../task.ts';
import {
  type Compare,
  emptyList,
  findItem,
  type SortedList,
  withItem,
  withoutItem,
} from './sorted-list.ts';

export interface SlotRequest {
  readonly taskId: TaskId;
  readonly role: Role;
  /** 0 (first) to 4. */
  readonly priority: number;
  readonly submittedAt: number;
  /** True for a task that was in the queue before: the limit does not refuse it. */
  readonly admitted: boolean;
  /** Null where no limit of a provider can stop it. */
  readonly backend: string | null;
  /** A person asked to try before the limit is over. */
  readonly triesNow: boolean;
}

interface Place {
  readonly request: SlotRequest;
  /** Rises with each request: of two that are alike, the earlier one comes first. */
  readonly number: number;
}

/**
 * Requests by priority, then by submission. What happens to one of them costs the same, however many
 * wait.
 */
export interface WaitingQueue {
  readonly length: number;
  readonly byTask: SortedList<Place>;
  readonly byRole: Readonly<Partial<Record<Role, SortedList<Place>>>>;
  readonly lastNumber: number;
}

export const emptyQueue: WaitingQueue = {
  length: 0,
  byTask: emptyList,
  byRole: {},
  lastNumber: 0,
};

const byTask: Compare<Pick<Place, 'request'>> = ({ request: one }, { request: other }) =>
  one.taskId < other.taskId ? -1 : one.taskId > other.taskId ? 1 : 0;

/** The order in which requests get slots. */
export const comparePlaces: Compare<{
  readonly request: Pick<SlotRequest, 'priority' | 'submittedAt'>;
  readonly number: number;
}> = (one, other) =>
  one.request.priority - other.request.priority ||
  one.request.submittedAt - other.request.submittedAt ||
  one.number - other.number;

const placeOf = (queue: WaitingQueue, taskId: TaskId): Place | undefined =>
  findItem<Pick<Place, 'request'>>(queue.byTask, { request: { taskId } as SlotRequest }, byTask) as
    | Place
    | undefined;

export const isWaiting = (queue: WaitingQueue, taskId: TaskId): boolean =>
  placeOf(queue, taskId) !== undefined;

export const withoutTask = (queue: WaitingQueue, taskId: TaskId): WaitingQueue => {
  const place = placeOf(queue, taskId);
  if (place === undefined) return queue;
  const { role } = place.request;
  const left = withoutItem(queue.byRole[role] ?? emptyList, place, comparePlaces);
  return {
    ...queue,
    length: queue.length - 1,
    byTask: withoutItem(queue.byTask, place, byTask),
    byRole: { ...queue.byRole, [role]: left },
  };
};

/** A repeated request keeps its position. */
export const withRequest = (queue: WaitingQueue, request: SlotRequest): WaitingQueue => {
  const { taskId, role, priority, submittedAt } = request;
  const earlier = placeOf(queue, taskId)?.request;
  if (earlier?.priority === priority && earlier.submittedAt === submittedAt) return queue;
  const others = withoutTask(queue, taskId);
  const place = { request, number: queue.lastNumber + 1 };
  return {
    length: others.length + 1,
    byTask: withItem(others.byTask, place, byTask),
    byRole: {
      ...others.byRole,
      [role]: withItem(others.byRole[role] ?? emptyList, place, comparePlaces),
    },
    lastNumber: place.number,
  };
};

const rolesIn = ({ byRole }: WaitingQueue): readonly Role[] => Object.keys(byRole) as Role[];

/** The first request of each role that waits. */
const firstOnes = (queue: WaitingQueue): readonly Place[] =>
  rolesIn(queue).flatMap((role) => queue.byRole[role]?.parts[0]?.[0] ?? []);

export const waitingRoles = (queue: WaitingQueue): readonly Role[] =>
  firstOnes(queue).map(({ request }) => request.role);

/** The first one of these roles. */
export const firstWaiting = (
  queue: WaitingQueue,
  isRole: (role: Role) => boolean,
): SlotRequest | undefined =>
  firstOnes(queue)
    .filter(({ request }) => isRole(request.role))
    .toSorted(comparePlaces)[0]?.request;

export const waitingOf = (queue: WaitingQueue, isRole: (role: Role) => boolean): number =>
  rolesIn(queue)
    .filter(isRole)
    .reduce((sum, role) => sum + (queue.byRole[role]?.length ?? 0), 0);

/** All, in order. */
export const requestsIn = ({ byRole }: WaitingQueue): readonly SlotRequest[] =>
  Object.values(byRole)
    .flatMap(({ parts }) => parts.flat())
    .toSorted(comparePlaces)
    .map(({ request }) => request);
