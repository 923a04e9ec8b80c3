import { isDeepStrictEqual } from 'node:util';
import { type EventObject, initialTransition, transition } from 'xstate';
import type { WorkflowInput } from '../../../machines/workflow/workflow-context.ts';
import {
  type WorkflowSnapshot,
  workflowMachine,
} from '../../../machines/workflow/workflow-machine.ts';
import type { ActorReads, Entry, EntryReads } from '../../store/port.ts';
import { type ReplayedStep, wrongStep } from './replay.ts';

/** The name of a workflow's row in the store, and the label of its tasks. */
export const workflowKey = (workflowId: string): string => `workflow:${workflowId}`;

/** Cause of the first entry of a workflow. */
export interface WorkflowStart extends EventObject {
  readonly type: 'xstate.init';
  readonly input: WorkflowInput;
}

export interface ReplayedWorkflow {
  readonly steps: readonly ReplayedStep[];
  /** Null without a first entry. */
  readonly snapshot: WorkflowSnapshot | null;
}

const isStart = (event: EventObject): event is WorkflowStart => event.type === 'xstate.init';

/** Runs the chart over the entries of a workflow, without effects. */
export const foldWorkflow = (entries: readonly Entry[]): ReplayedWorkflow => {
  let snapshot: WorkflowSnapshot | null = null;
  const steps: ReplayedStep[] = [];
  for (const { type, seq, at, data, cause } of entries) {
    if (type !== 'workflow' || cause === null) continue;
    const recorded: { readonly value: unknown } = JSON.parse(data);
    const event: EventObject = JSON.parse(cause);
    if (isStart(event)) [snapshot] = initialTransition(workflowMachine, event.input);
    else if (snapshot !== null) [snapshot] = transition(workflowMachine, snapshot, event as never);
    const state = snapshot?.value ?? null;
    steps.push({
      ...{ seq, at: new Date(at).toISOString(), attempt: 0 },
      ...{ machine: 'workflow', event: event.type, state },
      same: isDeepStrictEqual(state, recorded.value),
    });
  }
  return { steps, snapshot };
};

/** One sentence on how the saved state differs from the replayed one; null when they are equal. */
export const workflowDifference = async (
  store: Pick<ActorReads, 'actor'> & Pick<EntryReads, 'read'>,
  workflowId: string,
  { steps, snapshot }: ReplayedWorkflow,
): Promise<string | null> => {
  const wrong = wrongStep(steps);
  if (wrong !== null) return wrong;
  const saved = await store.actor(workflowKey(workflowId));
  if (saved === null || snapshot === null) return null;
  const after = steps.at(-1)?.seq ?? 0;
  // It may have gone on meanwhile.
  if ((await store.read({ taskId: workflowId, after, limit: 1 })).length > 0) return null;
  const { value, context } = JSON.parse(saved.snapshot);
  const replayed = JSON.parse(JSON.stringify({ value: snapshot.value, context: snapshot.context }));
  return isDeepStrictEqual({ value, context }, replayed)
    ? null
    : `the saved state of the workflow is not what its journal makes of it (${JSON.stringify(snapshot.value)})`;
};
