import type { TaskId } from '../../machines/task.ts';
import type { PageRequest } from '../../machines/tracked-task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';

type Filter = Pick<PageRequest, 'status' | 'unblocked'>;

const matching = (
  all: readonly TrackedTask[],
  { status, unblocked = false }: Filter,
): readonly TrackedTask[] =>
  all
    .filter((task) => status === undefined || statusInTracker(task) === status)
    .filter(({ unmet }) => !unblocked || unmet.length === 0);

/** Number of tasks of a page without limit. */
export const countMatching = (all: readonly TrackedTask[], filter: Filter): number =>
  matching(all, filter).length;

/** As `TrackerReads.pageAtWork`. */
export const pageAtWorkOf = (
  all: readonly TrackedTask[],
  { status, ...request }: PageRequest,
  pending: ReadonlySet<TaskId>,
): readonly TrackedTask[] =>
  pageOf(all, { ...request, limit: all.length })
    .filter((task) => pending.has(task.id) && statusInTracker(task) !== status)
    .slice(0, request.limit);

/** A page of a list that is in the order of creation. */
export const pageOf = (
  all: readonly TrackedTask[],
  request: PageRequest,
): readonly TrackedTask[] => {
  const { order = 'oldest', after, limit } = request;
  const ordered = order === 'oldest' ? all : all.toReversed();
  const from = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after.id) + 1;
  return matching(ordered.slice(from), request).slice(0, limit);
};
