import { parseTaskId, type TaskId } from '../../machines/task.ts';
import type { Journal } from '../journal/journal.ts';
import type { Tracker } from '../tracker/port.ts';

export interface DependentsPorts {
  readonly tracker: Tracker;
  readonly journal: Pick<Journal, 'onCommit'>;
  readonly policy: () => 'wait' | 'fail';
  readonly failWith: (taskId: TaskId, dependency: TaskId, why: string) => Promise<void>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** By the policy `fail`, a task that fails takes those with it that depend on it and that nobody has asked to run. */
export const failDependents = ({ tracker, journal, policy, failWith, log }: DependentsPorts): void => {
  const fail = async (dependency: TaskId, why: string): Promise<void> => {
    const dependents = (await tracker.list()).filter(
      ({ status, labels, unmet }) =>
        status === 'open' && !labels.includes('agent-failed') && unmet.includes(dependency),
    );
    for (const { id } of dependents) await failWith(id, dependency, why);
  };
  journal.onCommit((entries) => {
    if (policy() !== 'fail') return;
    for (const { type, taskId, data } of entries) {
      const id = type === 'failed' ? parseTaskId(taskId) : null;
      if (id === null) continue;
      const { error } = JSON.parse(data) as { readonly error: { readonly message: string } | null };
      // A listener must not throw, and the commit that told of the failure is not over yet.
      setImmediate(() => {
        fail(id, error?.message ?? 'for a reason that is not known').catch((cause: unknown) =>
          log('what depends on a failed task could not be told', { task_id: id, error: cause }),
        );
      });
    }
  });
};
