import {
  openChoices,
  type StepChoice,
  type WorkflowContext,
} from '../../machines/workflow-context.ts';

export interface AnsweredQuestion {
  /** The id of the question: `?strategist`, or `?` for all. */
  readonly step: string;
  /** `complete` or `cancelled`. */
  readonly status: string;
  /** Why it was closed or cancelled; of a role, its summary. */
  readonly reason: string;
}

const saysNo = /^\s*(?:no|n)\b/i;

const fromPerson = ({ step, status, reason }: AnsweredQuestion): StepChoice => ({
  step: step.slice(1),
  selected: status === 'complete' && !saysNo.test(reason),
  by: 'person',
  reason,
});

/** Null when the role said nothing about the step. */
const fromRole = (step: string, { reason }: AnsweredQuestion): StepChoice | null => {
  const line = reason
    .split(/\r?\n/)
    .map((text) => text.replace(/[*_`]/g, '').replace(/^\s*[-+]\s*/, ''))
    .find((text) => text.toLowerCase().startsWith(`${step}:`));
  const [, word, why = ''] = /^[^:]*:\s*(yes|no)\b[\s,;:.-]*(.*)/i.exec(line ?? '') ?? [];
  if (word === undefined) return null;
  return {
    step,
    selected: word.toLowerCase() === 'yes',
    by: 'product-manager',
    reason: why.trim(),
  };
};

/** What was decided about each open step; a step that a role does not mention stays open. */
export const readAnswers = (
  context: WorkflowContext,
  answers: readonly AnsweredQuestion[],
): readonly StepChoice[] => {
  const ofRole = answers.find(({ step }) => step === '?');
  if (ofRole === undefined) return answers.map(fromPerson);
  return openChoices(context).flatMap(({ id }) => fromRole(id, ofRole) ?? []);
};
