import { signal } from '@preact/signals';
import type { WorkflowLine, WorkflowView } from '../../src/actors/workflows/workflow-view.ts';
import { call } from './source.ts';

export type { WorkflowLine, WorkflowView };

/** Those that are not over, then the last to end first; not the oldest of many. */
export const workflows = signal<readonly WorkflowLine[]>([]);

/** @throws CallError */
export const readWorkflows = async (): Promise<void> => {
  const found = await call<{ readonly workflows: readonly WorkflowLine[] }>('workflow.list');
  workflows.value = found.workflows;
};

/** @throws CallError */
export const readWorkflow = (workflowId: string): Promise<WorkflowView> =>
  call('workflow.show', { workflow_id: workflowId });
