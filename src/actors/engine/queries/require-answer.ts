import { ServiceError } from '../../../machines/errors.ts';
import { asksForStep, isForPerson } from '../../../machines/for-person.ts';
import { statusInTracker, type TrackedTask } from '../../../machines/tracked-task.ts';
import { workflowKey } from '../../journal/replay/replay.ts';

/** `no`, and not the first word of a sentence: `no problems found`. */
const isBareNo = /^\s*no\s*(?:[,;:.!-]|$)/i;
const yesOrNo = /^\s*(?:yes|no|y|n)\b/i;

const workflowOf = (labels: readonly string[]): string =>
  labels.find((label) => label.startsWith(workflowKey('')))?.slice(workflowKey('').length) ?? '';

const answerProblem = ({ id, labels }: TrackedTask, reason: string): string | null => {
  if (asksForStep(labels))
    return yesOrNo.test(reason)
      ? null
      : `must begin with yes or no, since ${id} is a question: agent close ${id} --reason "yes, …"`;
  return isForPerson(labels) && isBareNo.test(reason)
    ? `says no, but to close ${id} means that it is done, and the next step begins; leave it open until it is done, or end the workflow: agent workflow cancel ${workflowOf(labels)}`
    : null;
};

/** A question of a workflow is closed with its answer, a step when it is done. @throws invalid_params */
export const requireAnswer = (task: TrackedTask | null, reason: string | null): void => {
  if (task === null || task.status === 'closed') return;
  const problem = answerProblem(task, reason ?? '');
  if (problem !== null)
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
