import type { EndedDependency } from '../../../machines/task/task-context.ts';
import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { TrackerReads } from '../../tracker/port.ts';

/** Tasks that start by themselves when their dependencies are complete. */
export interface DependencyWaits {
  /**
   * Resolves with null when the dependencies may be complete, and with the dependency that fails
   * the task by policy.
   */
  wait(
    taskId: TaskId,
    unmet: readonly TaskId[],
    signal: AbortSignal,
  ): Promise<EndedDependency | null>;
  completed(dependency: TaskId): void;
  failed(ended: EndedDependency): void;
  waitingFor(dependency: TaskId): readonly TaskId[];
  /** Somebody changed a task. Returns false when it is not waiting. */
  changed(tracked: TrackedTask): boolean;
  stop(): void;
}

export interface DependencyWaitPorts {
  readonly tracker: Pick<TrackerReads, 'findMany'>;
  readonly viewOf: (tracked: TrackedTask) => Promise<TaskView>;
  readonly policy: () => 'wait' | 'fail';
}

interface Wait {
  readonly unmet: Set<TaskId>;
  readonly end: (ended: EndedDependency | null) => void;
}

/** The waits by task, and the tasks by each dependency: an event costs what it concerns. */
const createIndex = () => {
  const waits = new Map<TaskId, Wait>();
  const byDependency = new Map<TaskId, Set<TaskId>>();
  const unlink = (dependency: TaskId, taskId: TaskId): void => {
    const tasks = byDependency.get(dependency);
    tasks?.delete(taskId);
    if (tasks?.size === 0) byDependency.delete(dependency);
  };
  return {
    get: (taskId: TaskId): Wait | undefined => waits.get(taskId),
    waitingFor: (dependency: TaskId): readonly TaskId[] => [
      ...(byDependency.get(dependency) ?? []),
    ],
    unlink,
    add: (taskId: TaskId, wait: Wait): void => {
      waits.set(taskId, wait);
      for (const dependency of wait.unmet)
        byDependency.set(dependency, (byDependency.get(dependency) ?? new Set()).add(taskId));
    },
    remove: (taskId: TaskId): Wait | undefined => {
      const wait = waits.get(taskId);
      for (const dependency of wait?.unmet ?? []) unlink(dependency, taskId);
      waits.delete(taskId);
      return wait;
    },
  };
};

/** Two reads of a tracker may disagree for a moment: a task is not asked for more often. */
const lookAfterMs = 1_000;
const longestPauseMs = 30_000;

/** Calls `look` with all ids of the last second; again later when it fails. */
const createLooks = (look: (ids: readonly TaskId[]) => Promise<void>) => {
  const toLook = new Set<TaskId>();
  let timer: NodeJS.Timeout | null = null;
  let isStopped = false;
  let failures = 0;
  const lookLater = (): void => {
    if (isStopped || timer !== null || toLook.size === 0) return;
    const pauseMs = Math.min(lookAfterMs * 2 ** failures, longestPauseMs);
    timer = setTimeout(() => void lookNow(), pauseMs).unref();
  };
  const lookNow = async (): Promise<void> => {
    const ids = [...toLook];
    toLook.clear();
    try {
      await look(ids);
      failures = 0;
    } catch {
      failures += 1;
      for (const id of ids) toLook.add(id);
    }
    timer = null;
    lookLater();
  };
  return {
    add: (taskId: TaskId): void => {
      toLook.add(taskId);
      lookLater();
    },
    stop: (): void => {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
};

export const createDependencyWaits = (ports: DependencyWaitPorts): DependencyWaits => {
  const { tracker, viewOf, policy } = ports;
  const index = createIndex();
  const end = (taskId: TaskId, ended: EndedDependency | null): void =>
    index.remove(taskId)?.end(ended);

  const failed: DependencyWaits['failed'] = (ended) => {
    for (const taskId of index.waitingFor(ended.dependency)) end(taskId, ended);
  };
  const changed: DependencyWaits['changed'] = ({ id, unmet }) => {
    const wait = index.remove(id);
    if (wait === undefined) return false;
    if (unmet.length === 0) wait.end(null);
    else index.add(id, { unmet: new Set(unmet), end: wait.end });
    const isMore = unmet.some((dependency) => !wait.unmet.has(dependency));
    if (isMore && policy() === 'fail') looks.add(id);
    return true;
  };
  /** A dependency may have ended before the wait began, or while no server ran. */
  const failEarlier = async (ids: readonly TaskId[]): Promise<void> => {
    const dependencies = new Set(ids.flatMap((id) => [...(index.get(id)?.unmet ?? [])]));
    for (const tracked of await tracker.findMany([...dependencies])) {
      const { status, error } = await viewOf(tracked);
      if (status === 'failed' || status === 'cancelled')
        failed({ dependency: tracked.id, status, why: error?.message ?? '' });
    }
  };
  const looks = createLooks(async (ids) => {
    const found = new Map((await tracker.findMany(ids)).map((task) => [task.id, task]));
    for (const id of ids) {
      const tracked = found.get(id);
      if (tracked === undefined) end(id, null);
      else changed(tracked);
    }
    if (policy() === 'fail') await failEarlier(ids);
  });

  return {
    wait: (taskId, unmet, signal) =>
      new Promise((resolve, reject) => {
        index.remove(taskId);
        index.add(taskId, { unmet: new Set(unmet), end: resolve });
        signal.addEventListener('abort', () => {
          if (index.get(taskId)?.end === resolve) index.remove(taskId);
          reject(signal.reason);
        });
        looks.add(taskId);
      }),
    completed: (dependency) => {
      for (const taskId of index.waitingFor(dependency)) {
        const wait = index.get(taskId);
        wait?.unmet.delete(dependency);
        index.unlink(dependency, taskId);
        if (wait?.unmet.size === 0) end(taskId, null); // The chart looks whether it is so.
      }
    },
    failed,
    waitingFor: index.waitingFor,
    changed,
    stop: looks.stop,
  };
};
