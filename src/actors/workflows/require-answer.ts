import { ServiceError } from '../../machines/errors.ts';
import { asksForStep } from '../../machines/for-person.ts';
import type { TrackedTask } from '../../machines/tracked-task.ts';

const yesOrNo = /^\s*(?:yes|no|y|n)\b/i;

/** A question of a workflow is closed with its answer. @throws invalid_params */
export const requireAnswer = (task: TrackedTask | null, reason: string | null): void => {
  if (task === null || task.status === 'closed' || !asksForStep(task.labels)) return;
  if (yesOrNo.test(reason ?? '')) return;
  const problem = `must begin with yes or no, since ${task.id} is a question: agent close ${task.id} --reason "yes, …"`;
  throw new ServiceError('invalid_params', { fields: [{ path: 'reason', problem }] });
};
