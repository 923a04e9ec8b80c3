import { isServiceError, type Refusal, ServiceError } from '../../machines/errors.ts';
import type { Role, RunOptions, TaskId } from '../../machines/task.ts';
import type { TaskView } from '../journal/task-view.ts';
import type { ActorReads, RequestAnswers, StoreWrites } from '../store/port.ts';
import type { TrackerReads } from '../tracker/port.ts';
import { requireAgents } from '../workflows/require-answer.ts';
import { OwnedElsewhereError } from './owned-elsewhere.ts';
import { createSharedCalls } from './shared-calls.ts';
import type { TaskCommands } from './task-commands.ts';
import { isFreeText, requireId } from './task-id.ts';
import type { CreateRequest, TaskQueries } from './task-queries.ts';

export interface ExecuteRequest {
  /** A task id, or text: a task is created from it. */
  readonly task: string;
  readonly role: Role;
  readonly options: RunOptions;
  readonly requestId?: string;
  /** For a task that is created from the text, whatever the text is. */
  readonly draft?: Pick<CreateRequest, 'labels' | 'dependencies'>;
}

export interface Execution {
  readonly task_id: string;
  readonly role: Role;
  readonly status: string;
  readonly phase: string;
  readonly attempt: number;
  readonly message: string;
  readonly stream_url: string;
  readonly created_at: string;
}

/** A request with the same id may run again while the task rests here: the first was refused. */
const phasesWithoutRun: ReadonlySet<string> = new Set([
  'waiting_for_run',
  'waiting_for_person',
  'waiting_for_dependencies',
]);

export interface ExecutePorts {
  readonly store: Pick<StoreWrites, 'commit'> & Pick<ActorReads, 'actor'> & RequestAnswers;
  readonly tracker: Pick<TrackerReads, 'find'>;
  readonly commands: Pick<TaskCommands, 'ask'>;
  readonly queries: Pick<TaskQueries, 'create' | 'status'>;
  /** @throws invalid_params when a cost limit cannot be kept */
  readonly requirePrice: (options: RunOptions, role: Role) => Promise<void>;
  /** @throws invalid_params when the caller may not enable the network */
  readonly requireNetwork: (options: RunOptions) => void;
  readonly optionsFor: (options: RunOptions, role: Role) => RunOptions;
  readonly maxRetries: () => number;
}

const executionOf = (view: TaskView, role: Role): Execution => ({
  task_id: view.task_id,
  role: view.role ?? role,
  status: view.status,
  phase: view.phase,
  attempt: view.status === 'queued' ? view.attempt + 1 : view.attempt,
  message: `Agent ${view.role ?? role} ${view.status === 'queued' ? 'queued' : 'started'} for execution. Task ID: ${view.task_id}`,
  stream_url: view.stream_url,
  created_at: view.created_at,
});

export const createExecute = (
  ports: ExecutePorts,
): ((request: ExecuteRequest) => Promise<Execution>) => {
  const { store, commands, queries } = ports;
  const repeated = createSharedCalls<Execution>();

  /** A repeated request finds the task that it created. */
  const create = async (given: CreateRequest, requestId: string | undefined): Promise<TaskId> => {
    const taskId = (await queries.create(given)).task_id as TaskId;
    if (requestId !== undefined)
      await store.commit({ entries: [], request: { id: requestId, taskId } });
    return taskId;
  };

  const run = async (request: ExecuteRequest): Promise<Execution> => {
    const { task, role, options, requestId, draft } = request;
    ports.requireNetwork(options);
    await ports.requirePrice(options, role);
    const isText = draft !== undefined || isFreeText(task);
    const taskId = isText
      ? await create({ description: task, ...draft }, requestId)
      : requireId(task);
    if (!isText) requireAgents(await ports.tracker.find(taskId).catch(() => null), 'run');
    const maxRetries = ports.maxRetries();
    const command = {
      type: 'run',
      role,
      options: ports.optionsFor(options, role),
      maxRetries,
    } as const;
    try {
      return executionOf(await commands.ask(taskId, command, requestId), role);
    } catch (error) {
      // With free text, the caller does not know the new task's id.
      if (!isServiceError(error) || error instanceof OwnedElsewhereError) throw error;
      throw ServiceError.from({
        code: error.code,
        facts: { ...error.facts, task_id: taskId },
      } as Refusal);
    }
  };

  const runOnce = async (request: ExecuteRequest, requestId: string): Promise<Execution> => {
    const seen = await store.request(requestId);
    if (seen?.answer != null) return JSON.parse(seen.answer) as Execution;
    if (seen !== null) {
      const view = await queries.status(seen.taskId);
      const isPending = (await store.actor(seen.taskId))?.pending === true;
      if (isPending || !phasesWithoutRun.has(view.phase)) return executionOf(view, request.role);
    }
    const { draft: _, ...rest } = request;
    const execution = await run(seen === null ? request : { ...rest, task: seen.taskId });
    await store.rememberAnswer(requestId, JSON.stringify(execution));
    return execution;
  };

  return (request) => {
    const { requestId } = request;
    return requestId === undefined
      ? run(request)
      : repeated.run(requestId, () => runOnce(request, requestId));
  };
};
