import { isRoleLabel } from './role-label.ts';

/** Labels that say to which workflow a task belongs, and who does it there; none for others. */
export const workflowLabels = (labels: readonly string[]): readonly string[] =>
  labels.some((label) => label.startsWith('workflow:'))
    ? labels.filter((label) => /^(workflow|phase|question):/.test(label) || isRoleLabel(label))
    : [];

/** The task is a question of a workflow: whether a step is done. */
export const asksForStep = (labels: readonly string[]): boolean =>
  labels.some((label) => label.startsWith('question:')) && isForPerson(labels);

/** Whether a person does this task of a workflow: only those of agents have a role. */
export const isForPerson = (labels: readonly string[]): boolean =>
  labels.some((label) => label.startsWith('workflow:')) && !labels.some(isRoleLabel);
