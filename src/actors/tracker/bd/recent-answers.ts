import type { TaskId } from '../../../machines/task.ts';
import type { TrackedTask } from '../../../machines/tracked-task.ts';

type Blockers = ReadonlyMap<string, readonly TaskId[]>;

/** Answers of bd of the last 500 ms, none from before our last write. */
export interface RecentAnswers {
  task(id: TaskId): TrackedTask | null;
  blockers(): Blockers | null;
  /**
   * The number of our writes when a read begins; the answer is not kept when another one comes
   * meanwhile.
   */
  epoch(): number;
  keepTask(task: TrackedTask, epoch: number): void;
  keepBlockers(blockers: Blockers, epoch: number): void;
  /** Forgets all answers, at each of our writes. */
  clear(): void;
}

const reuseMs = 500;

interface KnownAnswer<Value> {
  readonly at: number;
  readonly value: Value;
}

const freshValue = <Value>(known: KnownAnswer<Value> | null | undefined): Value | null =>
  known != null && performance.now() - known.at < reuseMs ? known.value : null;

export const createRecentAnswers = (): RecentAnswers => {
  const tasks = new Map<string, KnownAnswer<TrackedTask>>();
  let blockers: KnownAnswer<Blockers> | null = null;
  let writes = 0;

  return {
    task: (id) => freshValue(tasks.get(id)),
    blockers: () => freshValue(blockers),
    epoch: () => writes,
    keepTask: (task, epoch) => {
      if (epoch !== writes) return;
      for (const [id, known] of tasks) if (freshValue(known) === null) tasks.delete(id);
      tasks.set(task.id, { at: performance.now(), value: task });
    },
    keepBlockers: (value, epoch) => {
      blockers = epoch === writes ? { at: performance.now(), value } : null;
    },
    clear: () => {
      writes += 1;
      blockers = null;
      tasks.clear();
    },
  };
};
