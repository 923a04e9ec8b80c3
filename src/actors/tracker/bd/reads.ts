import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import type { Urgency } from '../../process/serial-queue.ts';
import type { BdCalls, RunBd } from './calls.ts';
import { trackedFromBd, unmetIn } from './issues.ts';
import { type BdQueries, createBdQueries, requireRead } from './queries.ts';

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

const reuseMs = 500;

interface KnownAnswer<Value> {
  readonly at: number;
  readonly value: Value;
}

const isFresh = <Value>(kept: KnownAnswer<Value> | null | undefined): kept is KnownAnswer<Value> =>
  kept != null && performance.now() - kept.at < reuseMs;

export const createBdReads = (
  calls: BdCalls,
  projectRoot: string,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): BdReads => {
  const { show, showAll, listAll, listTracked, listBlocked } = createBdQueries(calls, projectRoot, log);
  const found = new Map<string, KnownAnswer<TrackedTask>>();
  const finding = new Map<string, Promise<TrackedTask | null>>();
  const listing = new Map<Urgency, Promise<readonly TrackedTask[]>>();
  let blocked: KnownAnswer<ReadonlyMap<string, readonly TaskId[]>> | null = null;
  /** Incremented by each of our writes; older answers are not cached. */
  let epoch = 0;

  const keep = (task: TrackedTask, since: number): void => {
    if (since !== epoch) return;
    for (const [id, kept] of found) if (!isFresh(kept)) found.delete(id);
    found.set(task.id, { at: performance.now(), value: task });
  };

  const blockersOf = async (run: RunBd, id: TaskId): Promise<readonly TaskId[]> => {
    if (!isFresh(blocked)) {
      const since = epoch;
      const value = await listBlocked(run);
      blocked = since === epoch ? { at: performance.now(), value } : null;
      return value.get(id) ?? [];
    }
    return blocked.value.get(id) ?? [];
  };

  const findNow = async (run: RunBd, id: TaskId): Promise<TrackedTask | null> => {
    const since = epoch;
    const issue = await show(run, id);
    if (issue === null) {
      requireRead(projectRoot, id);
      return null;
    }
    const direct = unmetIn(issue);
    const unmet = issue.status === 'open' && direct.length === 0 ? await blockersOf(run, id) : direct;
    const task = trackedFromBd(issue, { unmet, ready: issue.status === 'open' && unmet.length === 0 });
    keep(task, since);
    return task;
  };

  return {
    show,
    showAll,
    listAll,
    blockersOf,
    recent: (id) => {
      const kept = found.get(id);
      return isFresh(kept) ? kept.value : null;
    },
    wrote: (task) => {
      epoch += 1;
      blocked = null;
      found.clear();
      finding.clear();
      listing.clear();
      if (task !== null) keep(task, epoch);
    },
    find: async (id) => {
      const kept = found.get(id);
      if (isFresh(kept)) return kept.value;
      const same =
        finding.get(id) ?? calls.alone('interactive', (run) => findNow(run, id)).finally(() => finding.delete(id));
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
