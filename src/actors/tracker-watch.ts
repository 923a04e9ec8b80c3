import type { TaskId } from '../machines/task.ts';
import type { TrackedTask } from '../machines/tracked-task.ts';
import type { Store } from './store/port.ts';
import type { Tracker } from './tracker/port.ts';

/** Looks at the tracker again and again, all tasks at once, and tells what others changed there. */
export interface TrackerWatch {
  start(): void;
  stop(): void;
}

export interface WatchPorts {
  readonly tracker: Tracker;
  readonly store: Store;
  /** Told of each task that is new or changed since the last look. */
  readonly observe: (task: TrackedTask) => Promise<void>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** Between the end of one look and the next: seldom enough for a tracker whose look takes long. */
const pauseMs = 1_500;
const pauseAtMostMs = 30_000;
const share = 3;
/** While the tracker cannot be used, it is asked more and more seldom. */
const failedPauseMs = 5_000;

const essence = ({ id: _, createdAt: __, updatedAt: ___, ...rest }: TrackedTask): string => JSON.stringify(rest);

export const createTrackerWatch = ({ tracker, store, observe, log }: WatchPorts): TrackerWatch => {
  let last: readonly TrackedTask[] | null = null;
  let known = new Map<TaskId, string>();
  let timer: NodeJS.Timeout | null = null;
  let stopped = true;
  let failures = 0;

  /** Tasks that the tracker says are ours, while nothing of ours runs: an earlier service gave them up (facts/beads 11). */
  const freeForgotten = async (tasks: readonly TrackedTask[]): Promise<void> => {
    for (const { id, status, assignee } of tasks) {
      if (status !== 'in_progress' || assignee !== tracker.actor) continue;
      const saved = store.actor(id);
      if (saved?.pending === true) continue;
      if (saved === null)
        log('a task is marked as started by this service, which knows nothing of it', { task_id: id });
      else {
        log('a task was still marked as started; it is open again', { task_id: id });
        await tracker.release(id, 'agent-failed');
      }
    }
  };

  const compare = async (tasks: readonly TrackedTask[]): Promise<void> => {
    if (tasks === last) return;
    const before = last === null ? null : known;
    const now = new Map(tasks.map((task) => [task.id, essence(task)]));
    last = tasks;
    known = now;
    if (before === null) return freeForgotten(tasks);
    for (const task of tasks) if (before.get(task.id) !== now.get(task.id)) await observe(task);
  };

  const look = async (): Promise<number> => {
    const began = Date.now();
    try {
      await compare(await tracker.list('background'));
      if (failures > 0) log('the tracker can be used again', { after_failures: failures });
      failures = 0;
      return Math.min(pauseMs + share * Math.max(0, Date.now() - began - 200), pauseAtMostMs);
    } catch (error) {
      failures += 1;
      if (failures === 1) log('the tracker cannot be used; it is asked again', { error });
      return Math.min(failedPauseMs * failures, pauseAtMostMs);
    }
  };

  const goOn = async (): Promise<void> => {
    const pause = await look();
    if (!stopped) timer = setTimeout(() => void goOn(), pause).unref();
  };

  return {
    start: () => {
      stopped = false;
      void goOn();
    },
    stop: () => {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
};
