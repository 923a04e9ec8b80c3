import {
  type CheckReport,
  hasPassed,
  openChoices,
  phaseOf,
  stepsOf,
  type WorkflowContext,
} from './workflow-context.ts';

type WithContext = { readonly context: WorkflowContext };

/** The guards of a workflow that `explain` evaluates too. */
export const workflowGuards = {
  hasOpenChoices: ({ context }: WithContext): boolean => openChoices(context).length > 0,
  hasNoSteps: ({ context }: WithContext): boolean =>
    stepsOf(context, phaseOf(context)).length === 0,
  hasPassed: (_: WithContext, { report }: { report: CheckReport }): boolean => hasPassed(report),
  hasRoundsLeft: ({ context }: WithContext): boolean => context.round < phaseOf(context).rounds,
};
export type WorkflowGuard = keyof typeof workflowGuards;
