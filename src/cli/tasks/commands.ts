import { z } from 'zod';
import { isFreeText, requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import type { NamedImage } from '../../actors/store/port.ts';
import { optionsSchema, parseParams } from '../../http/wire.ts';
import { isServiceError } from '../../machines/errors.ts';
import { isRoleLabel, roleLabel } from '../../machines/role-label.ts';
import { CallError, type Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import { callForTask, readTask } from '../client/task-answers.ts';
import { exitCodes } from '../output/exit-codes.ts';
import { parkedLine } from '../output/render/render-frame.ts';
import { wrapLines } from '../output/wrap.ts';
import { confirmText } from '../runs/confirm-text.ts';
import { type RunRequest, runAndFollow, submit } from '../runs/run-task.ts';
import { goOnWords } from '../words/state-words.ts';
import type { GivenImage } from './read-images.ts';

export interface CreateArgs {
  readonly description: string;
  readonly title?: string;
  readonly deps?: readonly string[];
  readonly priority?: number;
  readonly label?: readonly string[];
  readonly role?: string;
  readonly images?: readonly GivenImage[];
}

const attach = async (
  client: Client,
  images: readonly GivenImage[],
): Promise<{ readonly attachments?: readonly NamedImage[] }> => {
  const attachments: NamedImage[] = [];
  for (const { name, bytes } of images)
    attachments.push({ digest: await client.upload(bytes), name });
  return attachments.length === 0 ? {} : { attachments };
};

const createTask = async (client: Client, args: CreateArgs): Promise<TaskView> => {
  const labels = [
    ...(args.label ?? []),
    ...(args.role === undefined ? [] : [roleLabel(args.role)]),
  ];
  return callForTask(client, 'create', {
    description: args.description,
    title: args.title,
    dependencies:
      args.deps === undefined
        ? undefined
        : args.deps.flatMap((ids) => ids.split(',')).map(requireId),
    priority: args.priority,
    ...(labels.length === 0 ? {} : { labels }),
    ...(await attach(client, args.images ?? [])),
  });
};

export const createOnly = async (context: CommandContext, args: CreateArgs): Promise<number> => {
  const task = await createTask(await context.connection.files(), args);
  if (context.json) context.io.json(task);
  else context.io.out(task.task_id);
  if (!context.json && context.io.width !== null && !task.labels.some(isRoleLabel))
    context.io.err(
      `note: it has no role: 'agent run' skips it unless you give --role\nto run it: agent engineer ${task.task_id}`,
    );
  return exitCodes.done;
};

const runOptionsSchema = z.object({ options: optionsSchema });

/**
 * Checks the run options before it creates the task. The id goes to stderr, since stdout belongs to
 * the run, and into the error when the run is refused.
 */
export const createAndRun = async (
  context: CommandContext,
  args: CreateArgs,
  request: Omit<RunRequest, 'task'>,
  detach: boolean,
): Promise<number> => {
  parseParams(runOptionsSchema, { options: request.options });
  const { task_id } = await createTask(await context.connection.server(), args);
  context.io.err(`created ${task_id}`);
  try {
    return await runTask(context, { ...request, task: task_id }, detach);
  } catch (error) {
    const hasFlags = Object.values(request.options).some((value) => value !== undefined);
    const flags = hasFlags ? ', and the same flags: without them, other limits hold' : '';
    context.io.err(`${task_id} is kept; run it with: agent ${request.role} ${task_id}${flags}`);
    if (!(error instanceof CallError)) throw error;
    throw new CallError(error.code, error.message, { ...error.facts, task_id }, error);
  }
};

/** Creates the task first if it is free text. */
export const runTask = async (
  context: CommandContext,
  request: RunRequest,
  detach: boolean,
): Promise<number> => {
  if (isFreeText(request.task)) {
    await confirmText(context, request);
    return createAndRun(context, { description: request.task }, request, detach);
  }
  try {
    requireId(request.task);
    return await runKnownTask(context, request, detach);
  } catch (error) {
    if (!isServiceError(error) && !(error instanceof CallError)) throw error;
    const { code, message, facts } = error;
    if (code === 'task_not_found')
      throw new CallError(code, message, { ...facts, asked_role: request.role });
    throw error instanceof CallError && code === 'dependencies_unmet' && !context.json
      ? withNewWay(error)
      : error;
  }
};

const withNewWay = ({ code, message, facts }: CallError): CallError =>
  new CallError(
    code,
    `${message}; add --when-ready to start it by itself when they are complete, or run all of them: agent run ${String(facts['task_id'])}`,
    facts,
  );

const runKnownTask = async (
  context: CommandContext,
  request: RunRequest,
  detach: boolean,
): Promise<number> => {
  const client = await context.connection.server();
  if (!detach) return runAndFollow(client, request, context.io);
  const execution = await submit(client, request);
  const { task_id, attempt } = execution;
  if (context.json) context.io.json(execution);
  else {
    const { parked_until, parked_reason } = await readTask(client, task_id);
    const parked = parkedLine({ parked_until, parked_reason });
    const how =
      parked !== null
        ? `is ${parked}; ${goOnWords(task_id, parked_reason)}`
        : execution['phase'] === 'waiting_for_dependencies'
          ? `starts by itself when its dependencies are complete; see: agent explain ${task_id}`
          : `attempt ${attempt} continues in the background; see: agent show ${task_id}, agent logs -f ${task_id}`;
    context.io.out(wrapLines(`${task_id} ${how}`, context.io.width));
  }
  return exitCodes.done;
};
