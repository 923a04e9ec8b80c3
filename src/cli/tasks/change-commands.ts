import { requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import { isServiceError } from '../../machines/errors.ts';
import { messageOf } from '../../machines/message-of.ts';
import { finalStatuses } from '../../machines/task.ts';
import { CallError, type Client, type Params } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { parkedLine } from '../output/render/render-frame.ts';
import { wrapLines } from '../output/wrap.ts';
import { followRetry } from '../runs/run-task.ts';
import { goOnWords } from '../words/state-words.ts';
import { fetchTasks } from './fetch-tasks.ts';

export interface ChangeArgs {
  readonly task_ids: readonly string[];
  readonly reason: string | undefined;
}

const reasonOf = ({ reason }: Pick<ChangeArgs, 'reason'>) =>
  reason === undefined ? {} : { reason };

const changeParams = (id: string, { reason }: Pick<ChangeArgs, 'reason'>) => ({
  task_id: requireId(id),
  reason,
});

/** What to do about dependencies that are not complete; without a server it is another error. */
const withWayOn = (error: unknown, id: string): unknown => {
  const isKnown = error instanceof CallError || isServiceError(error);
  if (!isKnown || error.code !== 'dependencies_unmet') return error;
  const facts: Readonly<Record<string, unknown>> = { ...error.facts };
  const unmet = Array.isArray(facts['unmet']) ? facts['unmet'].join(' ') : '';
  const how = `complete them first with 'agent run ${unmet}', or remove them with 'agent dep remove ${id} ${unmet}'`;
  return new CallError(error.code, `${error.message}; ${how}`, facts, error);
};

/** `queued`, or until when it is parked. */
const changedWords = ({ task_id, status, parked_until, parked_reason }: TaskView): string => {
  const parked = parkedLine({ parked_until, parked_reason });
  return parked === null ? status : `is ${parked}; ${goOnWords(task_id, parked_reason)}`;
};

/** What becomes of saved work that nobody merged; null when there is none. */
const openWork = ({ task_id, work }: TaskView): string | null => {
  if (work?.branch === undefined || work.merged_at !== undefined) return null;
  if (work.discarded_at !== undefined) return null;
  const force = work.incomplete === true ? ' --force' : '';
  return `its work stays on ${work.branch} and is not merged; take it with: agent merge ${task_id}${force}, or refuse it with: agent discard ${task_id}`;
};

/**
 * Changes each task. A refusal does not keep the others from it. @returns those that were changed
 * @throws the last refusal
 */
const changeEach = async (
  { io, json }: CommandContext,
  client: Client,
  method: 'close' | 'reopen' | 'cancel' | 'retry',
  each: readonly Params<'retry'>[],
): Promise<readonly TaskView[]> => {
  const changed: TaskView[] = [];
  let refusal: { readonly error: unknown } | null = null;
  for (const params of each) {
    try {
      const task = await callForTask(client, method, params);
      changed.push(task);
      if (json) io.json(task);
      else {
        const isLeft = method === 'cancel' && task.status === 'complete';
        const words = isLeft ? 'stays complete; its test has ended' : changedWords(task);
        io.out(wrapLines(`${task.task_id} ${words}`, io.width));
        const work =
          method === 'close'
            ? openWork(await callForTask(client, 'status', { task_id: task.task_id }))
            : null;
        if (work !== null) io.err(wrapLines(work, io.width));
      }
    } catch (caught) {
      const error = json ? caught : withWayOn(caught, params.task_id);
      if (refusal !== null) io.err(`agent: ${messageOf(refusal.error)}`);
      refusal = { error };
    }
  }
  if (refusal !== null) throw refusal.error;
  return changed;
};

/** `close` and `reopen` need no server, `cancel` stops an agent. */
export const changeTasks = async (
  context: CommandContext,
  method: 'close' | 'reopen' | 'cancel',
  args: ChangeArgs,
): Promise<number> => {
  const each = args.task_ids.map((id) => changeParams(id, args));
  const { connection } = context;
  const client = await (method === 'cancel' ? connection.server() : connection.files());
  await changeEach(context, client, method, each);
  return exitCodes.done;
};

const openAtOnce = 1_000;

/**
 * `agent cancel --all`: workflows first, which would make further tasks, then tasks that wait, so that
 * none starts meanwhile. Looks again, since a task may have been started before its workflow ended.
 */
export const cancelEverything = async (
  context: CommandContext,
  args: Pick<ChangeArgs, 'reason'>,
): Promise<number> => {
  const { io, json, connection } = context;
  const client = await connection.server();
  const { workflows } = await client.call('workflow.list', { limit: 1 });
  for (const { workflow_id, status } of workflows) {
    if (finalStatuses.has(status)) continue;
    await client.call('workflow.cancel', { workflow_id, ...reasonOf(args) });
    if (!json) io.out(`${workflow_id} cancelled`);
  }
  const seen = new Set<string>();
  for (;;) {
    const { tasks } = await fetchTasks(client, io, { status: 'active' }, openAtOnce);
    const open = tasks.filter(({ task_id }) => !seen.has(task_id));
    if (open.length === 0) break;
    const waiting = (task: TaskView): number => (task.status === 'started' ? 1 : 0);
    const inOrder = open.toSorted((one, other) => waiting(one) - waiting(other));
    for (const { task_id } of inOrder) {
      seen.add(task_id);
      await changeEach(context, client, 'cancel', [changeParams(task_id, args)]).catch(
        (error: unknown) => {
          // It ended meanwhile.
          if (!(error instanceof CallError) || error.code !== 'event_not_allowed') throw error;
        },
      );
    }
  }
  if (!json && seen.size + workflows.length === 0) io.out('nothing runs or waits to run');
  return exitCodes.done;
};

export interface RetryArgs extends ChangeArgs {
  readonly options: Readonly<Record<string, unknown>>;
  readonly async: boolean;
}

/** Nothing of it happens soon: its provider's limit, its budget or a person holds it up. */
const isHeld = ({ parked_until, phase }: TaskView): boolean =>
  parked_until !== undefined || phase === 'waiting_for_person';

/** One task is followed, as a run is. */
export const retryTasks = async (context: CommandContext, args: RetryArgs): Promise<number> => {
  const { io, json, connection } = context;
  const options = Object.keys(args.options).length === 0 ? {} : { options: args.options };
  const each = args.task_ids.map((id) => ({ ...changeParams(id, args), ...options }));
  const client = await connection.server();
  const [only] = each;
  if (only !== undefined && each.length === 1 && !json && !args.async)
    return followRetry(
      client,
      only.task_id,
      async () => {
        const [task] = await changeEach(context, client, 'retry', [only]);
        return task === undefined || (io.width === null && isHeld(task)) ? null : task.attempt;
      },
      io,
    );
  const changed = await changeEach(context, client, 'retry', each);
  const ids = changed
    .filter(({ parked_until }) => parked_until === undefined)
    .map(({ task_id }) => task_id);
  if (json || ids.length === 0) return exitCodes.done;
  io.err(
    ids.length === 1
      ? `it runs in the background; watch it with: agent logs -f ${ids[0]}`
      : `they run in the background; wait for them with: agent wait ${ids.join(' ')}`,
  );
  return exitCodes.done;
};
