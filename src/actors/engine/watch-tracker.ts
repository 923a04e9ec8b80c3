import type { TaskId } from '../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';
import { shownIn } from '../journal/transition-frames.ts';
import type { Store } from '../store/port.ts';
import { ignoreStartedRun, onlyWhileIdle } from '../tracker/idle-fence.ts';
import type { Fence, Tracker } from '../tracker/port.ts';

/** Looks at the tracker again and again, all tasks at once, and tells what others changed there. */
export interface TrackerWatch {
  start(): void;
  /** Begins nothing more. Resolves when its round has ended. */
  stop(): Promise<void>;
}

export interface WatchPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  /** Told of each task that is new or changed since the last look; false: it is at work, and must be looked at again. */
  readonly observe: (task: TrackedTask) => Promise<boolean>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Between the end of one look and the next: seldom enough for a tracker whose look takes long. */
const pauseMs = 1_500;
const pauseAtMostMs = 30_000;
const share = 3;
/** While the tracker cannot be used, it is asked more and more seldom. */
const failedPauseMs = 5_000;

/** With its time: what was changed and changed back between two looks was changed all the same. */
const essence = ({ id: _, createdAt: __, ...rest }: TrackedTask): string => JSON.stringify(rest);

export const createTrackerWatch = ({ tracker, store, observe, log }: WatchPorts): TrackerWatch => {
  let last: readonly TrackedTask[] | null = null;
  const known = new Map<TaskId, string>();
  /** Tasks at work that changed there: what of it is news will be known when they rest. */
  const waiting = new Set<TaskId>();
  let begun = false;
  let timer: NodeJS.Timeout | null = null;
  let stopped = true;
  let failures = 0;
  let round = Promise.resolve();

  const fence = (id: TaskId): Fence => {
    const isAtRest = onlyWhileIdle(store, id);
    return () => {
      if (stopped) throw new Error('the server is stopping');
      isAtRest();
    };
  };

  /** Tasks that the tracker says are ours, while nothing of ours runs: an earlier service gave them up (facts/beads 11). */
  const freeForgotten = async (tasks: readonly TrackedTask[]): Promise<void> => {
    for (const { id, status, assignee } of tasks) {
      if (stopped) return;
      if (status !== 'in_progress' || assignee !== tracker.actor) continue;
      const saved = store.actor(id);
      if (saved?.pending === true) continue;
      if (saved === null)
        log('a task is marked as started by this service, which knows nothing of it', { task_id: id });
      else {
        log('a task was still marked as started; it is open again', { task_id: id });
        await tracker.release(id, 'agent-failed', fence(id)).catch(ignoreStartedRun);
      }
    }
  };

  /** Whether its state is another one than people were shown last, by an earlier server. */
  const changedMeanwhile = (task: TrackedTask): boolean => {
    const latest = store.latest(task.id, 'snapshot');
    return latest !== null && shownIn(latest.data).status !== statusInTracker(task);
  };

  /** What could not be told, because the tracker went away or the task is at work, is told after a later look. */
  const compare = async (tasks: readonly TrackedTask[]): Promise<void> => {
    const isSame = tasks === last;
    if (isSame && waiting.size === 0) return;
    if (!begun) await freeForgotten(tasks);
    for (const task of isSame ? tasks.filter(({ id }) => waiting.has(id)) : tasks) {
      if (stopped) return;
      const now = essence(task);
      const before = known.get(task.id);
      const isNews = before === undefined && !begun ? changedMeanwhile(task) : before !== now;
      const isTaken = !(isNews || waiting.has(task.id)) || (await observe(task));
      if (isTaken) waiting.delete(task.id);
      else waiting.add(task.id);
      known.set(task.id, now);
    }
    const listed = new Set(tasks.map(({ id }) => id));
    for (const id of known.keys()) if (!listed.has(id)) known.delete(id);
    for (const id of waiting) if (!listed.has(id)) waiting.delete(id);
    begun = true;
    last = tasks;
  };

  const look = async (): Promise<number> => {
    const began = performance.now();
    try {
      await compare(await tracker.list('background'));
      if (failures > 0) log('the tracker can be used again', { after_failures: failures });
      failures = 0;
      return Math.min(pauseMs + share * Math.max(0, performance.now() - began - 200), pauseAtMostMs);
    } catch (error) {
      if (stopped) return pauseMs;
      failures += 1;
      if (failures === 1) log('the tracker cannot be used; it is asked again', { error });
      return Math.min(failedPauseMs * failures, pauseAtMostMs);
    }
  };

  const goOn = async (): Promise<void> => {
    const pause = await look();
    if (!stopped) timer = setTimeout(begin, pause).unref();
  };
  const begin = (): void => {
    round = goOn();
  };

  return {
    start: () => {
      stopped = false;
      begin();
    },
    stop: () => {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      return round;
    },
  };
};
