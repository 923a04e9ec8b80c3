import { isRoleLabel } from './role-label.ts';

/** The task is a question of a workflow: whether a step is done. */
export const asksForStep = (labels: readonly string[]): boolean =>
  labels.some((label) => label.startsWith('question:')) && isForPerson(labels);

/** Whether a person does this task of a workflow: only those of agents have a role. */
export const isForPerson = (labels: readonly string[]): boolean =>
  labels.some((label) => label.startsWith('workflow:')) && !labels.some(isRoleLabel);
