import type { EndedDependency } from '../../../machines/task/task-context.ts';
import { parseTaskId, type TaskId } from '../../../machines/task.ts';
import { statusInTracker, type TrackedTask } from '../../../machines/tracked-task.ts';
import { entry } from '../../journal/event-types.ts';
import type { Journal } from '../../journal/journal.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { Entry } from '../../store/port.ts';
import type { TrackerReads } from '../../tracker/port.ts';
import type { DependencyWaits } from './dependency-waits.ts';

export interface DependentsPorts {
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
