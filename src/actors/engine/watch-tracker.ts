import type { TaskId } from '../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import { shownIn } from '../journal/transition-frames.ts';
import type { Store } from '../store/port.ts';
import { ignoreStartedRun, onlyWhileIdle } from '../tracker/idle-fence.ts';
import type { Fence, Tracker } from '../tracker/port.ts';

/** Reads all tasks of the tracker at intervals and reports changes by others. */
export interface TrackerWatch {
  start(): void;
  stop(): Promise<void>;
}

export interface WatchPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  /**
   * Called for each task that is new or changed. Returns false when it is at work and must be
   * observed again.
   */
  readonly observe: (task: TrackedTask) => Promise<boolean>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Pause between two looks; three times as long as a look takes. */
const pauseMs = 1_500;
const pauseAtMostMs = 30_000;
const share = 3;
/** Pause after a failed look, times the number of failures. */
const failedPauseMs = 5_000;

/** Includes the time of the change: two changes may cancel each other out. */
const essence = ({ id: _, createdAt: __, ...rest }: TrackedTask): string => JSON.stringify(rest);

type IsStopped = () => boolean;

/** Opens tasks that an earlier server left started, while nothing of ours runs (facts/beads 11). */
const releaseForgotten = async (
  { tracker, store, log }: WatchPorts,
  tasks: readonly TrackedTask[],
  isStopped: IsStopped,
): Promise<void> => {
  const fenceFor = (id: TaskId): Fence => {
    const requireIdle = onlyWhileIdle(store, id);
    return () => {
      if (isStopped()) throw new Error('the server is stopping');
      requireIdle();
    };
  };
  for (const { id, status, assignee } of tasks) {
    if (isStopped()) return;
    if (status !== 'in_progress' || assignee !== tracker.actor) continue;
    const saved = store.actor(id);
    if (saved?.pending === true) continue;
    if (saved === null)
      log('a task is started in the tracker for this service, which knows nothing of it', { task_id: id });
    else {
      log('a task was left started in the tracker; it is open again', { task_id: id });
      await tracker.release(id, 'agent-failed', fenceFor(id)).catch(ignoreStartedRun);
    }
  }
};

/** Reports the tasks that differ from the last look. A task that could not be observed comes again. */
const createComparison = (ports: WatchPorts, isStopped: IsStopped) => {
  const { store, observe } = ports;
  const known = new Map<TaskId, string>();
  /** Tasks at work that changed in the tracker; observed again when they are at rest. */
  const waiting = new Set<TaskId>();
  let last: readonly TrackedTask[] | null = null;
  let begun = false;

  /** True when the status differs from the last frame of an earlier server. */
  const changedMeanwhile = (task: TrackedTask): boolean => {
    const latest = store.latest(task.id, 'snapshot');
    return latest !== null && shownIn(latest.data).status !== statusInTracker(task);
  };
  const observeIfChanged = async (task: TrackedTask): Promise<void> => {
    const now = essence(task);
    const before = known.get(task.id);
    const isNews = before === undefined && !begun ? changedMeanwhile(task) : before !== now;
    const isTaken = !(isNews || waiting.has(task.id)) || (await observe(task));
    if (isTaken) waiting.delete(task.id);
    else waiting.add(task.id);
    known.set(task.id, now);
  };
  const forgetAllBut = (listed: ReadonlySet<TaskId>): void => {
    for (const id of known.keys()) if (!listed.has(id)) known.delete(id);
    for (const id of waiting) if (!listed.has(id)) waiting.delete(id);
  };

  return async (tasks: readonly TrackedTask[]): Promise<void> => {
    const isSame = tasks === last;
    if (isSame && waiting.size === 0) return;
    if (!begun) await releaseForgotten(ports, tasks, isStopped);
    for (const task of isSame ? tasks.filter(({ id }) => waiting.has(id)) : tasks) {
      if (isStopped()) return;
      await observeIfChanged(task);
    }
    forgetAllBut(new Set(tasks.map(({ id }) => id)));
    begun = true;
    last = tasks;
  };
};

export const createTrackerWatch = (ports: WatchPorts): TrackerWatch => {
  const { tracker, log } = ports;
  let timer: NodeJS.Timeout | null = null;
  let stopped = true;
  let failures = 0;
  let running = Promise.resolve();
  const compare = createComparison(ports, () => stopped);

  /** @returns the pause before the next look (ms) */
  const look = async (): Promise<number> => {
    const startedAt = performance.now();
    try {
      await compare(await tracker.list('background'));
      if (failures > 0) log('the tracker can be used again', { after_failures: failures });
      failures = 0;
      return Math.min(pauseMs + share * Math.max(0, performance.now() - startedAt - 200), pauseAtMostMs);
    } catch (error) {
      if (stopped) return pauseMs;
      failures += 1;
      if (failures === 1) log('the tracker cannot be used; the server tries again', { error });
      return Math.min(failedPauseMs * failures, pauseAtMostMs);
    }
  };

  const lookThenWait = async (): Promise<void> => {
    const pause = await look();
    if (!stopped) timer = setTimeout(begin, pause).unref();
  };
  const begin = (): void => {
    running = lookThenWait();
  };

  return {
    start: () => {
      stopped = false;
      begin();
    },
    stop: () => {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      return running;
    },
  };
};
