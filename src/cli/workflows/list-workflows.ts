import type { Client, Result } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { oneLine } from '../output/safe-text.ts';
import { renderTable } from '../output/table.ts';
import { limitOf } from '../tasks/look-commands.ts';
import { UsageError } from '../words/usage-error.ts';

export type WorkflowSummary = Result<'workflow.start'>;

export const lineOfWorkflow = ({
  workflow_id,
  kind,
  name,
  phase,
  status,
}: WorkflowSummary): WorkflowSummary => ({
  ...{ workflow_id, kind, name, phase, status },
});

/** With a limit, those that are not over and so many others; else all. */
const fetchWorkflows = async (client: Client, limit: number | null) => {
  const workflows: WorkflowSummary[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await client.call('workflow.list', { limit: limit ?? 1_000, cursor });
    workflows.push(...page.workflows);
    cursor = page.next_cursor;
    if (cursor === undefined || limit !== null) return { workflows, isAll: cursor === undefined };
  }
};

const workflowHeader = ['WORKFLOW', 'KIND', 'PHASE', 'STATUS', 'NAME'];

/** Prints those that are not over last, next to the prompt. */
export const printWorkflows = async (
  { connection, io, json }: CommandContext,
  args: { readonly limit: number | undefined; readonly all: boolean | undefined },
): Promise<number> => {
  const limit = limitOf({ ...args, json }, io);
  const found = await fetchWorkflows(await connection.server(), limit);
  const workflows = found.workflows.toReversed();
  if (json) {
    io.json({ workflows: workflows.map(lineOfWorkflow) });
    return exitCodes.done;
  }
  const rows = workflows.map(({ workflow_id, kind, phase, status, name }) =>
    [workflow_id, kind, String(phase), status, oneLine(name)].map((text) => ({ text })),
  );
  io.out(renderTable(workflowHeader, rows, io.width));
  if (!found.isAll) io.err('there are older; see: agent workflow list --all');
  return exitCodes.done;
};

const wholeId = /^wf-[a-z0-9]{5}$/;

/** Completes the beginning or the end of an id that only one workflow has. */
export const findWorkflowId = async (client: Client, given: string): Promise<string> => {
  if (wholeId.test(given)) return given;
  const { workflows } = await fetchWorkflows(client, null);
  const ids = workflows.map(({ workflow_id }) => workflow_id);
  const found = ids.filter((id) => id.startsWith(given) || id.endsWith(given));
  if (found.length > 1)
    throw new UsageError(`${given} may be ${found.join(' or ')}; write more of the id`);
  return found[0] ?? given;
};
