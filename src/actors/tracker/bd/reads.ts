import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import type { Urgency } from '../../process/serial-queue.ts';
import type { BdCalls, RunBd } from './calls.ts';
import { trackedFromBd, unmetIn } from './issues.ts';
import { type BdQueries, createBdQueries, requireRead } from './queries.ts';
import { createRecentAnswers } from './recent-answers.ts';

/** Reads from bd. Concurrent callers share one call; its answer is cached for 500 ms. */
export interface BdReads extends Pick<BdQueries, 'show' | 'showAll' | 'listAll'> {
  find(id: TaskId): Promise<TrackedTask | null>;
  list(urgency: Urgency): Promise<readonly TrackedTask[]>;
  /** Includes inherited and external blockers. */
  blockersOf(run: RunBd, id: TaskId): Promise<readonly TaskId[]>;
  /** Clears the cache and caches this task, which was just written. */
  wrote(task: TrackedTask | null): void;
  /** The cached answer of the last `find`, or null. */
  recent(id: TaskId): TrackedTask | null;
}

export const createBdReads = (
  calls: BdCalls,
  projectRoot: string,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): BdReads => {
  const { show, showAll, listAll, listTracked, listBlocked } = createBdQueries(
    calls,
    projectRoot,
    log,
  );
  const recent = createRecentAnswers();
  const finding = new Map<string, Promise<TrackedTask | null>>();
  const listing = new Map<Urgency, Promise<readonly TrackedTask[]>>();

  const blockersOf = async (run: RunBd, id: TaskId): Promise<readonly TaskId[]> => {
    const known = recent.blockers();
    if (known !== null) return known.get(id) ?? [];
    const epoch = recent.epoch();
    const blocked = await listBlocked(run);
    recent.keepBlockers(blocked, epoch);
    return blocked.get(id) ?? [];
  };

  const findNow = async (run: RunBd, id: TaskId): Promise<TrackedTask | null> => {
    const epoch = recent.epoch();
    const issue = await show(run, id);
    if (issue === null) {
      requireRead(projectRoot, id);
      return null;
    }
    const direct = unmetIn(issue);
    const unmet =
      issue.status === 'open' && direct.length === 0 ? await blockersOf(run, id) : direct;
    const task = trackedFromBd(issue, {
      unmet,
      ready: issue.status === 'open' && unmet.length === 0,
    });
    recent.keepTask(task, epoch);
    return task;
  };

  return {
    show,
    showAll,
    listAll,
    blockersOf,
    recent: recent.task,
    wrote: (task) => {
      recent.clear();
      finding.clear();
      listing.clear();
      if (task !== null) recent.keepTask(task, recent.epoch());
    },
    find: async (id) => {
      const known = recent.task(id);
      if (known !== null) return known;
      const same =
        finding.get(id) ??
        calls.alone('interactive', (run) => findNow(run, id)).finally(() => finding.delete(id));
      finding.set(id, same);
      return same;
    },
    list: async (urgency) => {
      const same =
        listing.get('interactive') ??
        listing.get(urgency) ??
        calls.alone(urgency, listTracked).finally(() => listing.delete(urgency));
      listing.set(urgency, same);
      return same;
    },
  };
};
