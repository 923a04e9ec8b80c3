import { isServiceError, type Refusal, ServiceError } from '../../../machines/errors.ts';
import type { TaskContext } from '../../../machines/task/task-context.ts';
import type { Role, RunOptions, TaskId } from '../../../machines/task.ts';
import type { TaskView } from '../../journal/task-view.ts';
import type { RequestAnswers } from '../../store/port.ts';
import type { TrackerReads } from '../../tracker/port.ts';
import type { Budgets } from '../attempts/budgets.ts';
import type { BackendSelector } from '../attempts/select-assistant.ts';
import { limitsFor, type Settings } from '../attempts/settings.ts';
import { requireAgents } from '../queries/require-answer.ts';
import { isFreeText, requireId } from '../queries/task-id.ts';
import type { CreateRequest, TaskQueries } from '../queries/task-queries.ts';
import { OwnedElsewhereError } from '../tasks/owned-elsewhere.ts';
import { createSharedCalls } from '../tasks/shared-calls.ts';
import { RepeatedRequestError, type TaskCommands } from '../tasks/task-commands.ts';

export interface ExecuteRequest {
  /** A task id, or text: a task is created from it. */
  readonly task: string;
  readonly role: Role;
  readonly options: RunOptions;
  readonly requestId?: string;
  /** The name of the caller. */
  readonly by?: string | undefined;
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

/** The request that a run of a task is remembered by. */
export const runRequest = (requestId: string, taskId: string): string =>
  `run/${requestId}/${taskId}`;

export interface ExecutePorts {
  readonly store: RequestAnswers;
  readonly tracker: Pick<TrackerReads, 'find'>;
  readonly commands: Pick<TaskCommands, 'ask'>;
  readonly queries: Pick<TaskQueries, 'create' | 'status'>;
  /** @throws invalid_params when a cost limit cannot be kept */
  readonly requirePrice: (options: RunOptions, role: Role) => Promise<void>;
  /** @throws invalid_params when the caller may not enable the network */
  readonly requireNetwork: (options: RunOptions) => void;
  readonly withRun: Budgets['withRun'];
  readonly usedBudget: Budgets['used'];
  /** The name of the model, or of the assistant, that would be called. */
  readonly modelOf: (options: RunOptions, role: Role) => string;
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

  const taskOf = async (
    { task, draft, requestId }: ExecuteRequest,
    known: string | undefined,
  ): Promise<TaskId> => {
    if (known === undefined && (draft !== undefined || isFreeText(task)))
      return (await queries.create({ description: task, ...draft }, requestId)).task_id as TaskId;
    const taskId = requireId(known ?? task);
    requireAgents(await ports.tracker.find(taskId).catch(() => null), 'run');
    return taskId;
  };

  const ask = async (taskId: TaskId, { role, options, requestId, by }: ExecuteRequest) => {
    const maxRetries = ports.maxRetries();
    const own = ports.withRun(ports.optionsFor(options, role));
    const command = { type: 'run', role, options: own, maxRetries, by } as const;
    const request = requestId === undefined ? undefined : runRequest(requestId, taskId);
    try {
      return await commands.ask(taskId, command, request);
    } catch (error) {
      if (error instanceof RepeatedRequestError) return queries.status(taskId);
      // With free text, the caller does not know the new task's id.
      if (!isServiceError(error) || error instanceof OwnedElsewhereError) throw error;
      throw ServiceError.from({
        code: error.code,
        facts: { ...error.facts, task_id: taskId },
      } as Refusal);
    }
  };

  const run = async (request: ExecuteRequest, known?: string): Promise<Execution> => {
    const { role, options } = request;
    ports.requireNetwork(options);
    await ports.requirePrice(options, role);
    return executionOf(await ask(await taskOf(request, known), request), role);
  };

  const runOnce = async (request: ExecuteRequest, requestId: string): Promise<Execution> => {
    const seen = await store.request(requestId);
    if (seen?.answer != null) return JSON.parse(seen.answer) as Execution;
    const execution = await run(request, seen?.taskId);
    const answer = JSON.stringify(execution);
    const first = await store.rememberAnswer(requestId, execution.task_id, answer);
    return JSON.parse(first) as Execution;
  };

  return (request) => {
    const { requestId } = request;
    return requestId === undefined
      ? run(request)
      : repeated.run(requestId, () => runOnce(request, requestId));
  };
};

/** Checks and defaults of a run by the settings of now. */
export const createExecuteChecks = (
  settings: () => Settings,
  backends: Pick<BackendSelector, 'requireCost' | 'now'>,
  budgets: Pick<Budgets, 'areSet' | 'withRun' | 'used'>,
  now: () => number,
): Pick<
  ExecutePorts,
  | 'requirePrice'
  | 'requireNetwork'
  | 'optionsFor'
  | 'withRun'
  | 'usedBudget'
  | 'modelOf'
  | 'maxRetries'
> => ({
  requirePrice: async (run, role) => {
    const { maxCostUsd } = limitsFor(settings(), run, role, now());
    if (maxCostUsd !== null || budgets.areSet(run)) await backends.requireCost(run, role);
  },
  requireNetwork: ({ network }) => {
    if (network !== true || settings().allowTaskNetwork) return;
    const problem =
      'may not be enabled by a request; set sandbox.allow_task_network, or roles.<name>.network';
    throw new ServiceError('invalid_params', { fields: [{ path: 'options.network', problem }] });
  },
  optionsFor: (options, role) => {
    const given = [...settings().roles[role].verify, ...(options.verify ?? [])];
    const verify = [...new Set(given)];
    const { publishing, merge } = settings();
    if (options.publish === true && merge !== 'none') {
      const problem = 'its work would be merged here; set workspace.merge to none';
      throw new ServiceError('invalid_params', { fields: [{ path: 'options.publish', problem }] });
    }
    return {
      ...options,
      ...(verify.length === 0 ? {} : { verify }),
      ...(publishing.publish === 'when_complete' ? { publish: options.publish ?? true } : {}),
    };
  },
  withRun: budgets.withRun,
  usedBudget: budgets.used,
  modelOf: (run, role) => backends.now(run, role).name,
  maxRetries: () => settings().maxRetries,
});

/**
 * Options of the attempt after the last one. By the same role, what the request does not name stays:
 * work that failed a verify command does not complete without it.
 */
export const nextOptions = (
  last: Pick<TaskContext, 'role' | 'options'>,
  role: Role,
  given: RunOptions,
  optionsFor: ExecutePorts['optionsFor'],
): RunOptions => optionsFor(last.role === role ? { ...last.options, ...given } : given, role);
