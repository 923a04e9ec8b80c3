import { parseTaskId, type TaskId } from '../../machines/task.ts';
import type { Journal } from '../journal/journal.ts';
import type { TrackerReads } from '../tracker/port.ts';

export interface DependentsPorts {
  readonly tracker: Pick<TrackerReads, 'list'>;
  readonly journal: Pick<Journal, 'onCommit'>;
  readonly policy: () => 'wait' | 'fail';
  readonly failWith: (taskId: TaskId, dependency: TaskId, why: string) => Promise<void>;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

/** With the policy `fail`, fails the open tasks that depend on a failed one. */
export const failDependents = ({
  tracker,
  journal,
  policy,
  failWith,
  log,
}: DependentsPorts): void => {
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
      // A listener must not throw, and the commit is still running.
      setImmediate(() => {
        fail(id, error?.message ?? 'for an unknown reason').catch((cause: unknown) =>
          log('the dependents of a failed task could not be failed', { task_id: id, error: cause }),
        );
      });
    }
  });
};
