import { z } from 'zod';
import { isFreeText, requireId } from '../../actors/engine/queries/task-id.ts';
import type { TaskView } from '../../actors/journal/task-view.ts';
import type { NamedImage } from '../../actors/store/port.ts';
import { optionsSchema, parseParams } from '../../http/wire.ts';
import { isServiceError } from '../../machines/errors.ts';
import { isRoleLabel, roleLabel } from '../../machines/role-label.ts';
import { CallError, type Client } from '../client/client.ts';
import type { CommandContext } from '../client/command-context.ts';
import type { Connection } from '../client/connect.ts';
import { callForTask, readTask } from '../client/task-answers.ts';
import { isYes } from '../output/ask.ts';
import { exitCodes } from '../output/exit-codes.ts';
import type { Io } from '../output/io.ts';
import { parkedLine } from '../output/render/render-frame.ts';
import { oneLine } from '../output/safe-text.ts';
import { wrapLines } from '../output/wrap.ts';
import { type RunRequest, runAndFollow, submit } from '../runs/run-task.ts';
import { goOnWords } from '../words/state-words.ts';
import { UsageError } from '../words/usage-error.ts';
import type { GivenImage } from './read-input.ts';

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

const wordsAtMost = 10;

const isExistingTask = (client: Client, word: string): Promise<boolean> =>
  readTask(client, word).then(
    () => true,
    (error: unknown) => {
      if (error instanceof CallError && error.code === 'task_not_found') return false;
      throw error;
    },
  );

/** Tasks that the text names where it says nothing else: `bd-a1 bd-b2`, `show bd-a1`. */
const tasksNamed = async (client: Client, text: string): Promise<readonly string[]> => {
  const words = text.trim().split(/\s+/);
  if (words.length > wordsAtMost || !words.every((word) => /^[\w.+-]{1,128}$/.test(word)))
    return [];
  const ids = words.length === 2 ? words.slice(1) : words;
  const areTasks = await Promise.all(ids.map((word) => isExistingTask(client, word)));
  if (!areTasks.every(Boolean)) return [];
  const [first = ''] = words;
  return words.length === 2 && (await isExistingTask(client, first)) ? words : ids;
};

/**
 * A text that only names tasks is rather a line that was written wrongly than work for an agent: it
 * asks on a terminal before it starts a paid run. @throws UsageError when nobody says yes
 */
const confirmText = async (
  {
    connection,
    io,
    json,
  }: { readonly connection: Connection; readonly io: Io; readonly json: boolean },
  { role, task: text }: Pick<RunRequest, 'role' | 'task'>,
): Promise<void> => {
  const ids = await tasksNamed(await connection.files(), text);
  if (ids.length === 0) return;
  const shown = JSON.stringify(oneLine(text, 80));
  const question = `create a task ${shown} and run the ${role} on it? [y/N] `;
  const said = json || io.ask === null ? null : await io.ask(question);
  if (said !== null && isYes(said)) return;
  const instead =
    ids.length === 1 ? `agent ${role} ${ids[0]}` : `agent run ${ids.join(' ')} --role ${role}`;
  throw new UsageError(
    `${shown} names ${ids.length === 1 ? 'a task' : 'tasks'} and says nothing to do, so nothing was started; did you mean: ${instead}`,
  );
};
