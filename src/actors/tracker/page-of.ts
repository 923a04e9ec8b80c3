import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import type { PageRequest } from '../ledger/task-reads.ts';

/** A page of a list that is in the order of creation. */
export const pageOf = (
  all: readonly TrackedTask[],
  request: PageRequest,
): readonly TrackedTask[] => {
  const { status, unblocked = false, after, limit } = request;
  const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after.id) + 1;
  return all
    .slice(from)
    .filter((task) => status === undefined || statusInTracker(task) === status)
    .filter(({ unmet }) => !unblocked || unmet.length === 0)
    .slice(0, limit);
};
