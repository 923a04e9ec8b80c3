import { ServiceError } from '../../machines/errors.ts';
import { asksForStep, isForPerson } from '../../machines/for-person.ts';
import { statusInTracker, type TrackedTask } from '../../machines/tracked-task.ts';

const yesOrNo = /^\s*(?:yes|no|y|n)\b/i;

/** A question of a workflow is closed with its answer. @throws invalid_params */
export const requireAnswer = (task: TrackedTask | null, reason: string | null): void => {
  if (task === null || task.status === 'closed' || !asksForStep(task.labels)) return;
  if (yesOrNo.test(reason ?? '')) return;
  const problem = `must begin with yes or no, since ${task.id} is a question: agent close ${task.id} --reason "yes, …"`;
  throw new ServiceError('invalid_params', { fields: [{ path: 'reason', problem }] });
};

/** No agent does a step of a person. @throws event_not_allowed */
export const requireAgents = (task: TrackedTask | null, event: 'run' | 'retry'): void => {
  if (task === null || statusInTracker(task) === 'complete' || !isForPerson(task.labels)) return;
  const state = asksForStep(task.labels) ? 'a question to a person' : 'a step of a person';
  throw new ServiceError('event_not_allowed', {
    task_id: task.id,
    event,
    state,
    allowed: ['close'],
  });
};
