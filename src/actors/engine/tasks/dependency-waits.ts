import type { EndedDependency } from '../../../machines/task/task-context.ts';
import { parseTaskId, type TaskId } from '../../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../../machines/tracked-task.ts';
import { entry } from '../../journal/event-types.ts';
import type { Journal } from '../../journal/journal.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Entry } from '../../store/port.ts';
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

interface DependencyWaitPorts {
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

interface DependentsPorts {
  readonly tracker: Pick<TrackerReads, 'find' | 'dependents'>;
  readonly viewOf: (tracked: TrackedTask) => Promise<TaskView>;
  readonly journal: Pick<Journal, 'onCommit' | 'gather'>;
  readonly waits: Pick<DependencyWaits, 'completed' | 'failed' | 'waitingFor'>;
  readonly policy: () => 'wait' | 'fail';
  readonly failWith: (taskId: TaskId, ended: EndedDependency) => Promise<void>;
  readonly now: () => number;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

const whyOf = (data: string): string => {
  const { error, reason } = JSON.parse(data) as {
    readonly error?: { readonly message: string } | null;
    readonly reason?: string | null;
  };
  return error?.message ?? reason ?? '';
};

const endedBy = ({ type, taskId, data }: Entry): EndedDependency | null => {
  const dependency = parseTaskId(taskId);
  return dependency !== null && (type === 'failed' || type === 'cancelled')
    ? { dependency, status: type, why: whyOf(data) }
    : null;
};

const stillWaits = ({ dependency, status, why }: EndedDependency): string =>
  `it depends on ${dependency}, which ${status === 'failed' ? 'failed' : 'was cancelled'}${why === '' ? '' : `: ${why}`}; it waits until that is complete: agent retry ${dependency}`;

/**
 * Tells the dependents of a task how it ended. When it failed or was cancelled, the policy `fail`
 * fails the queued ones, and the policy `wait` logs it to those that wait to start.
 */
export const tellDependents = (ports: DependentsPorts): void => {
  const { tracker, journal, waits, policy, failWith, now, log } = ports;
  /** Somebody may have started it again meanwhile. */
  const isStillEnded = async ({ dependency, status }: EndedDependency): Promise<boolean> => {
    const task = await tracker.find(dependency);
    return task !== null && (await ports.viewOf(task)).status === status;
  };
  const failResting = async (ended: EndedDependency): Promise<void> => {
    if (!(await isStillEnded(ended))) return;
    for (const task of await tracker.dependents(ended.dependency))
      if (statusInTracker(task) === 'queued') await failWith(task.id, ended);
  };
  const warnAll = (ended: EndedDependency): void => {
    const data = { level: 'warn', message: stillWaits(ended) };
    for (const taskId of waits.waitingFor(ended.dependency))
      journal.gather({ entries: [entry(taskId, 0, 'log', now(), data)] });
  };
  const fail = (ended: EndedDependency): void => {
    waits.failed(ended);
    // A listener must not throw, and the commit is still running.
    setImmediate(() => {
      failResting(ended).catch((error: unknown) =>
        log('could not fail the tasks that depend on one that failed', {
          task_id: ended.dependency,
          error,
        }),
      );
    });
  };

  journal.onCommit((entries) => {
    for (const committed of entries) {
      const dependency = committed.type === 'completed' ? parseTaskId(committed.taskId) : null;
      if (dependency !== null) waits.completed(dependency);
      const ended = endedBy(committed);
      if (ended === null) continue;
      if (policy() === 'fail') fail(ended);
      else setImmediate(() => warnAll(ended));
    }
  });
};
