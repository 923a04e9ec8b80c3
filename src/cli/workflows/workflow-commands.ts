import type { Thoroughness } from '../../machines/thoroughness.ts';
import { CallError, type Client, type Params, type Result } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { renderTable } from '../output/render/table.ts';
import { oneLine, stripControls } from '../output/safe-text.ts';
import { wrapAfter } from '../output/wrap.ts';
import { limitOf } from '../tasks/look-commands.ts';
import { inWordsOfCommand } from '../words/refused-params.ts';
import { UsageError } from '../words/usage-error.ts';
import { renderWorkflow } from './render-workflow.ts';

type WorkflowSummary = Result<'workflow.start'>;

const lineOfWorkflow = ({
  workflow_id,
  kind,
  name,
  phase,
  status,
  problem,
}: WorkflowSummary): WorkflowSummary => ({
  workflow_id,
  kind,
  name,
  phase,
  status,
  problem,
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
const printWorkflows = async (
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
  for (const { problem, status } of workflows)
    if (problem !== undefined && status === 'started')
      io.err(wrapAfter('note: ', oneLine(problem, 2_000), io.width));
  if (!found.isAll) io.err('there are older; see: agent workflow list --all');
  return exitCodes.done;
};

const wholeId = /^wf-[a-z0-9]{5}$/;

/** Completes the beginning or the end of an id that only one workflow has. */
const findWorkflowId = async (client: Client, given: string): Promise<string> => {
  if (wholeId.test(given)) return given;
  const { workflows } = await fetchWorkflows(client, null);
  const ids = workflows.map(({ workflow_id }) => workflow_id);
  const found = ids.filter((id) => id.startsWith(given) || id.endsWith(given));
  if (found.length > 1)
    throw new UsageError(`${given} may be ${found.join(' or ')}; write more of the id`);
  return found[0] ?? given;
};

export interface WorkflowArgs {
  readonly action: string;
  readonly subject: string | undefined;
  readonly name: string | undefined;
  readonly phase0: string | undefined;
  readonly product: string | undefined;
  readonly thoroughness: Thoroughness | undefined;
  readonly verify: readonly string[] | undefined;
  readonly model: string | undefined;
  readonly reason: string | undefined;
  readonly limit: number | undefined;
  readonly all: boolean | undefined;
}

const requiredSubject = (args: WorkflowArgs, what: string): string => {
  if (args.subject === undefined) throw new UsageError(`workflow ${args.action} needs ${what}`);
  if (args.name !== undefined && args.action !== 'start')
    throw new UsageError(
      `workflow ${args.action} does not take ${JSON.stringify(args.name)}: one workflow at a time`,
    );
  return args.subject;
};

/** `ask`, `role`, `none`, or the names of steps. */
const choicesOfPhase0 = (phase0: string | undefined) => {
  if (phase0 === undefined || phase0 === 'ask') return {};
  if (phase0 === 'role') return { decides: 'role' } as const;
  const steps = phase0 === 'none' ? [] : phase0.split(',').map((step) => step.trim());
  return { steps: steps.filter((step) => step !== '') };
};

/** Parameters of `workflow.start` that have another word on the command line. */
const wordsOfParams: Readonly<Record<string, string>> = {
  kind: 'workflow',
  steps: '--phase0',
  decides: '--phase0',
  product: '--product',
  model: '--model',
  thoroughness: '--thoroughness',
  verify: '--verify',
};

const wordIn =
  (words: Readonly<Record<string, string>>) =>
  (path: string): string => {
    const [param = '', ...rest] = path.split('.');
    return [words[param] ?? param, ...rest].join('.');
  };

const callStart = async (
  client: Client,
  params: Params<'workflow.start'>,
): Promise<WorkflowSummary> => {
  try {
    return await client.call('workflow.start', params);
  } catch (error) {
    throw inWordsOfCommand(error, wordIn(wordsOfParams));
  }
};

const startWorkflow = async (
  { connection, io, json }: CommandContext,
  args: WorkflowArgs,
): Promise<number> => {
  const kind = requiredSubject(args, 'a workflow, such as feature or research');
  const { name, product, thoroughness, verify, model } = args;
  if (name === undefined)
    throw new UsageError(
      `workflow start ${kind} needs a name: agent workflow start ${kind} "<name>"`,
    );
  const client = await connection.server();
  const line = await callStart(client, {
    kind,
    name,
    ...choicesOfPhase0(args.phase0),
    product,
    thoroughness,
    model,
    verify: verify === undefined ? undefined : [...verify],
  });
  const shown = await client.call('workflow.show', { workflow_id: line.workflow_id });
  if (json) io.json(lineOfWorkflow(line));
  else io.out(renderWorkflow(shown, io.width));
  if (shown.reports.length > 0 && verify === undefined) {
    const phases = [...new Set(shown.reports.map(({ phase }) => `phase ${phase}`))].join(' and ');
    io.err(
      wrapAfter(
        'note: ',
        `without --verify the gates of ${phases} find only reports that agents commit, and git may ignore those; to let the server run your tests: agent workflow cancel ${line.workflow_id}, then start it with --verify "<test command>"`,
        io.terminal()?.columns ?? null,
      ),
    );
  }
  return exitCodes.done;
};

const showWorkflow = async (
  { connection, io, json }: CommandContext,
  args: WorkflowArgs,
): Promise<number> => {
  const given = requiredSubject(args, 'an id; see: agent workflow list');
  const client = await connection.server();
  const workflow_id = await findWorkflowId(client, given);
  const view = await client.call('workflow.show', { workflow_id }).catch((error) => {
    throw inWordsOfCommand(error, wordIn({ workflow_id: given }));
  });
  if (json) io.json(view);
  else io.out(renderWorkflow(view, io.width));
  return exitCodes.done;
};

/** Says in which state a workflow is that cannot be changed like that, and `otherwise`. */
const refuseChange =
  (workflow_id: string, given: string, otherwise: string) =>
  (error: unknown): never => {
    if (!(error instanceof CallError) || error.code !== 'event_not_allowed')
      throw inWordsOfCommand(error, wordIn({ workflow_id: given }));
    const says = `${workflow_id} is ${String(error.facts['state'])}; ${otherwise}`;
    throw new CallError(error.code, says, error.facts, error);
  };

const cancelWorkflow = async (
  { connection, io, json }: CommandContext,
  args: WorkflowArgs,
): Promise<number> => {
  const given = requiredSubject(args, 'an id; see: agent workflow list');
  const { reason } = args;
  const client = await connection.server();
  const workflow_id = await findWorkflowId(client, given);
  const view = await client
    .call('workflow.cancel', { workflow_id, reason })
    .catch(refuseChange(workflow_id, given, 'there is nothing to cancel'));
  if (json) io.json(lineOfWorkflow(view));
  else io.out(stripControls(`${workflow_id} ${view.status}`));
  return exitCodes.done;
};

const retryWorkflow = async (
  { connection, io, json }: CommandContext,
  args: WorkflowArgs,
): Promise<number> => {
  const given = requiredSubject(args, 'an id; see: agent workflow list');
  const client = await connection.server();
  const workflow_id = await findWorkflowId(client, given);
  const otherwise = 'only one that failed or was cancelled can be retried, and once';
  const line = await client
    .call('workflow.retry', { workflow_id })
    .catch(refuseChange(workflow_id, given, otherwise));
  if (json) io.json(lineOfWorkflow(line));
  else
    io.out(
      stripControls(
        `${line.workflow_id} goes on with phase ${line.phase} of ${workflow_id}; see it with: agent workflow show ${line.workflow_id}`,
      ),
    );
  return exitCodes.done;
};

/** `agent workflow start|list|show|retry|cancel`. */
export const workflow = async (context: CommandContext, args: WorkflowArgs): Promise<number> => {
  if (args.action === 'start') return startWorkflow(context, args);
  if (args.action === 'show') return showWorkflow(context, args);
  if (args.action === 'retry') return retryWorkflow(context, args);
  if (args.action === 'cancel') return cancelWorkflow(context, args);
  if (args.subject !== undefined)
    throw new UsageError(`workflow list does not take ${JSON.stringify(args.subject)}`);
  return printWorkflows(context, args);
};
