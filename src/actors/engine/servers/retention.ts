import { setTimeout as delay } from 'node:timers/promises';
import { dayMs } from '../../../machines/milliseconds.ts';
import type { TaskId } from '../../../machines/task.ts';
import { finalStatuses } from '../../../machines/task.ts';
import { statusInTracker } from '../../../machines/tracked-task.ts';
import type { Histories } from '../../store/rows/histories.ts';
import type { TrackerReads } from '../../tracker/port.ts';
import type { FinishedAttempt, FinishedWork } from '../../workspace/worktrees/finished-work.ts';
import { removeReports } from './kept-reports.ts';

export interface RetentionPorts {
  readonly histories: Histories;
  readonly tracker: Pick<TrackerReads, 'findMany'>;
  /** Tasks with work that is not merged keep their history: `agent merge` needs it. */
  readonly work: Pick<FinishedWork, 'all' | 'remove'>;
  readonly reportsFolder: string;
  /** Age of histories that go; 0: none goes. */
  readonly days: () => number;
  /** Epoch ms. */
  readonly now: () => number;
}

/** Removes what is known of tasks that ended long ago, in short turns of the event loop. */
export interface Retention {
  /** Tasks whose history is old enough to go. */
  old(works: readonly FinishedAttempt[]): AsyncGenerator<TaskId>;
  /** @returns false when the task is at work again */
  remove(taskId: TaskId, works: readonly FinishedAttempt[], signal?: AbortSignal): Promise<boolean>;
  /**
   * Removes what is old, and what an interrupted run left. @returns how many tasks lost their
   * history
   */
  run(signal: AbortSignal): Promise<number>;
}

/** Others get their turn before the next step. */
const pause = (): Promise<void> => delay(2);

export const createRetention = ({
  histories,
  tracker,
  work,
  reportsFolder,
  days,
  now,
}: RetentionPorts): Retention => {
  const before = (): number => now() - days() * dayMs;

  const isOver = async (taskIds: readonly TaskId[]): Promise<ReadonlySet<string>> => {
    const tasks = await tracker.findMany(taskIds);
    const open = new Set<string>(
      tasks.filter((task) => !finalStatuses.has(statusInTracker(task))).map(({ id }) => id),
    );
    return new Set(taskIds.filter((id) => !open.has(id)));
  };

  async function* old(works: readonly FinishedAttempt[]): AsyncGenerator<TaskId> {
    if (days() === 0) return;
    const kept = new Set(works.filter(({ isUnmerged }) => isUnmerged).map(({ taskId }) => taskId));
    for (let after: string | null = ''; after !== null; await pause()) {
      const page = await histories.page(after);
      const found: TaskId[] = [];
      for (const id of page.taskIds)
        if (!kept.has(id) && (await histories.isOld(id, before()))) found.push(id as TaskId);
      const over = found.length === 0 ? new Set<string>() : await isOver(found);
      yield* found.filter((id) => over.has(id));
      after = page.next;
    }
  }
  const finish = async (taskId: string, signal?: AbortSignal): Promise<void> => {
    await removeReports(reportsFolder, taskId);
    while (signal?.aborted !== true && (await histories.removeSome(taskId))) await pause();
  };
  /**
   * Records of attempts that left nothing else. Branches and folders go only when a person says so.
   */
  const removeRecords = async (
    taskId: TaskId,
    works: readonly FinishedAttempt[],
  ): Promise<void> => {
    for (const each of works)
      if (
        each.taskId === taskId &&
        each.branch === null &&
        each.folder === null &&
        each.stays === null
      )
        await work.remove(each);
  };
  const remove: Retention['remove'] = async (taskId, works, signal) => {
    if (!(await histories.mark(taskId, before(), { at: now(), days: days() }))) return false;
    await removeRecords(taskId, works);
    await finish(taskId, signal);
    return true;
  };

  return {
    old,
    remove,
    run: async (signal) => {
      let removed = 0;
      for (const taskId of await histories.marked()) await finish(taskId, signal);
      const works = days() === 0 ? [] : await work.all();
      for await (const taskId of old(works)) {
        if (signal.aborted) break;
        if (await remove(taskId, works, signal)) removed += 1;
      }
      while (!signal.aborted && (await histories.shrink())) await pause();
      return removed;
    },
  };
};

const runEveryMs = dayMs;

/** Runs now and once a day. */
export const scheduleRetention = (
  { run }: Pick<Retention, 'run'>,
  log: (message: string, facts: Readonly<Record<string, unknown>>) => void,
): { stop(): Promise<void> } => {
  const abort = new AbortController();
  const runOnce = async (): Promise<void> => {
    try {
      const tasks = await run(abort.signal);
      if (tasks > 0) log('removed the histories of old tasks', { tasks });
    } catch (error) {
      log('could not remove the histories of old tasks; the server tries again in a day', {
        error,
      });
    }
  };
  let running = runOnce();
  const timer = setInterval(() => {
    running = running.then(runOnce);
  }, runEveryMs).unref();
  return {
    stop: async () => {
      clearInterval(timer);
      abort.abort();
      await running;
    },
  };
};
