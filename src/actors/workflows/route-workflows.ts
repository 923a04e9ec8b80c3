import { z } from 'zod';
import type { RoutePorts } from '../engine/service/routed-service.ts';
import { workflowKey } from '../journal/replay/replay.ts';
import type { WorkflowService } from './workflow-host.ts';
import type { WorkflowView } from './workflow-view.ts';

const cancelMethod = 'workflow.cancel';
const cancelSchema = z.tuple([z.string(), z.string().nullable()]);

/** A workflow is cancelled by the server that has its actor. All else is read from the rows. */
export const createRoutedWorkflows = (
  inner: WorkflowService,
  {
    node,
    ownerOf,
    ask,
  }: Pick<RoutePorts, 'node' | 'ask'> & {
    readonly ownerOf: (actorId: string) => Promise<string | null>;
  },
) => {
  const service: WorkflowService = {
    ...inner,
    cancel: async (workflowId, reason) => {
      const owner = await ownerOf(workflowKey(workflowId));
      return owner === null || owner === node
        ? inner.cancel(workflowId, reason)
        : ((await ask(owner, cancelMethod, [workflowId, reason], 45_000)) as WorkflowView);
    },
  };
  return {
    service,
    /** Undefined: another method. */
    answer: (method: string, params: unknown): Promise<unknown> | undefined =>
      method === cancelMethod ? inner.cancel(...cancelSchema.parse(params)) : undefined,
  };
};
