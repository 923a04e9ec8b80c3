import {
  openChoices,
  phaseOf,
  stepsOf,
  type WorkflowContext,
} from '../../machines/workflow-context.ts';
import { type WorkflowGuard, workflowGuards } from '../../machines/workflow-guards.ts';
import type { WorkflowSnapshot } from '../../machines/workflow-machine.ts';
import { type WorkflowLine, type WorkflowView, workflowLine } from './workflow-view.ts';

interface WorkflowGuardValue {
  readonly guard: WorkflowGuard;
  readonly value: boolean;
  readonly inputs: Readonly<Record<string, unknown>>;
}

/** As the explanation of a task, with the workflow. */
export interface WorkflowExplanation {
  readonly task_id: string;
  readonly workflow: WorkflowLine & Pick<WorkflowView, 'continued_as'>;
  readonly state: unknown;
  readonly guards: readonly WorkflowGuardValue[];
  readonly allowed_events: readonly string[];
  /** One sentence: it waits for this, or ended because of this. */
  readonly reason: string | null;
  readonly deadline: null;
  readonly request_reason: null;
  readonly conflicts: readonly [];
}

/** The guards of the chart, evaluated now; `hasPassed` only where the phase was checked. */
const guardsOf = (context: WorkflowContext): readonly WorkflowGuardValue[] => {
  const phase = phaseOf(context);
  const open = openChoices(context).map(({ id }) => id);
  const steps = stepsOf(context, phase).map(({ id }) => id);
  const report = context.reports.find((each) => each.phase === context.phase)?.report;
  const failed = (report?.findings ?? [])
    .filter(({ passed }) => !passed)
    .map(({ gate, check, says }) => `${gate}, ${check}: ${says}`);
  const { round } = context;
  const { rounds } = phase;
  return [
    {
      guard: 'hasOpenChoices',
      value: workflowGuards.hasOpenChoices({ context }),
      inputs: { open },
    },
    { guard: 'hasNoSteps', value: workflowGuards.hasNoSteps({ context }), inputs: { steps } },
    ...(report === undefined
      ? []
      : [
          {
            guard: 'hasPassed' as const,
            value: workflowGuards.hasPassed({ context }, { report }),
            inputs: { failed },
          },
        ]),
    {
      guard: 'hasRoundsLeft',
      value: workflowGuards.hasRoundsLeft({ context }),
      inputs: { round, rounds },
    },
  ];
};

export const explainWorkflow = (
  snapshot: WorkflowSnapshot,
  { waits_for, why, continued_as }: Pick<WorkflowView, 'waits_for' | 'why' | 'continued_as'>,
): WorkflowExplanation => {
  const waits = waits_for.length === 0 ? null : `it waits for ${waits_for.join('; ')}`;
  return {
    task_id: snapshot.context.workflowId,
    workflow: { ...workflowLine(snapshot), continued_as },
    state: snapshot.value,
    guards: guardsOf(snapshot.context),
    allowed_events: snapshot.can({ type: 'cancel', reason: null }) ? ['cancel'] : [],
    reason: waits ?? why ?? null,
    ...{ deadline: null, request_reason: null, conflicts: [] },
  };
};
