import { workflowKey } from '../journal/replay-workflow.ts';
import { readEach } from '../journal/snapshots.ts';
import type { ActorReads } from '../store/port.ts';
import { workflowOfSaved } from './own-folders.ts';
import { fillIn } from './planned-tasks.ts';

/** Where reports of a task may be; empty without a workflow that is not over. */
export const reportPathsOf = async (
  store: Pick<ActorReads, 'openWorkflows'>,
  labels: readonly string[],
): Promise<readonly string[]> => {
  if (!labels.some((label) => label.startsWith(workflowKey('')))) return [];
  const open = readEach(await store.openWorkflows(), workflowOfSaved);
  const own = open.find(({ workflowId }) => labels.includes(workflowKey(workflowId)));
  if (own === undefined) return [];
  const reports = own.definition.phases
    .flatMap(({ gates }) => gates)
    .flatMap(({ checks }) => checks)
    .flatMap((check) => ('reports' in check ? check.reports : []));
  return [...new Set(reports.map((path) => fillIn(own, path)))];
};
